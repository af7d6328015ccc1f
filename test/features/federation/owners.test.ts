import { callersForAll } from '../../modules/diaries/callers.ts';
import { diariesModule } from '../../modules/diaries/diaries.module.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('rows of callers', () => {
  const store = storeForAll({ GRAPHQL_FEDERATION: 'true' }, undefined, {
    more: [diariesModule],
  });
  const callers = callersForAll(store);

  test('a reference of another subgraph to a row of another is null', async () => {
    const { ada, bob, all, ofAda, ofBob, query } = callers;
    const of = [ofAda, ofBob].map(
      ({ id }) => `{ __typename: "Diary", id: ${id} }`,
    );
    const [first, second] = [`${ofAda.id}`, `${ofBob.id}`];
    const seen: Array<[string, Array<string | null>]> = [
      [ada, [first, null]],
      [bob, [null, second]],
      [all, [first, second]],
    ];
    for (const [key, expected] of seen) {
      const { data } = await query(
        key,
        `{ _entities(representations: [${of}]) { __typename ... on Diary { id title } } }`,
      );
      expect(data._entities.map((one: any) => one?.id ?? null)).toEqual(
        expected,
      );
    }
  });
});
