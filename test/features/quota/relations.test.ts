import { Unavailable } from '#engine/errors.js';
import { sql, withRows } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { relationsForAll } from '../../support/relations.ts';
import { rest } from '../../support/rest.ts';
import { onNode, type ServiceNode } from '../../support/store.ts';

/** The animals that fields below the root read are charged. */

const store = relationsForAll();

const unitsLeft = async (node: ServiceNode) =>
  Number(
    /r=(\d+)/.exec(
      `${(await rest(node, '/v1/pets/none')).headers.ratelimit}`,
    )?.[1],
  );

describe('with a quota', () => {
  const charged = (query: string) =>
    onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const { headers, errors } = await graphqlText(node, { query });
      expect(errors).toBeUndefined();
      const reported = Number(/r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);
      expect(await unitsLeft(node)).toBe(reported - 1);
      return before - reported;
    });

  test.each<[number, string]>([
    // Three animals with five friends each, by a list; then with one friend
    // each.
    [1 + 3 + 3 * 5, '{ pets(limit: 3) { friends { id } } }'],
    [1 + 3 + 3, '{ pets(limit: 3) { friend { id } } }'],
    [
      2 + 3 + 3 * 5 + 5,
      '{ pets(limit: 3) { friends { id } } petsConnection { edges { cursor } } }',
    ],
    [
      1 + 3 + 1 + 3 * 5,
      '{ __schema { queryType { name } } pets(limit: 3) { friends { id } } }',
    ],
  ])('%i units are charged for %s', async (units, query) => {
    expect(await charged(query)).toBe(units);
  });

  test('a subscription is charged for each event, and for the animals that its fields read', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const query =
        'subscription { petAdded(after: "3") { id friends(limit: 3) { id } } }';
      const stream = await openStream(node, { body: { query } });
      const friends = ['1', '2', '3'].map((id) => ({ id }));
      expect((await stream.until(2)).map(({ data }) => data)).toEqual(
        ['4', '5'].map((id) => ({ data: { petAdded: { id, friends } } })),
      );
      const { json } = await rest(node, '/v1/pets', {
        method: 'POST',
        json: { name: 'Rex', categoryId: 1 },
      });
      await stream.until(3);
      stream.close();
      await eventually(async () => node.app.subscriptions.count === 0);
      await sql(store.database, `delete from pet where id = ${json.id}`);
      // The subscription, three events, the friends of each, the creation, and
      // this request.
      expect(before - (await unitsLeft(node))).toBe(1 + 3 + 3 * 3 + 2 + 1);
    });
  });

  test('a subscription is not charged for an event that is not sent, because its fields cannot be read', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const query = 'subscription { petAdded(after: "3") { friend { id } } }';
      const stream = await withRows(
        store.database,
        (rows) => async (statement, values) => {
          if (statement.name.startsWith('find_')) throw Unavailable.late();
          return rows(statement, values) as never;
        },
        async () => {
          const opened = await openStream(node, { body: { query } });
          expect(await opened.ended).toBe('cut');
          return opened;
        },
      );
      expect(stream.events).toEqual([]);
      expect(before - (await unitsLeft(node))).toBe(1 + 1);
    });
  });
});
