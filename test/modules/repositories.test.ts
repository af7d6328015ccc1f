// runs: embedded, postgres

import { Call } from '#engine/call.js';
import { StoreError } from '#engine/errors.js';
import { Records } from '#engine/records/records.js';
import type { Repository } from '#engine/records/repository.js';
import type { Page } from '#engine/validation/page.js';
import { sql } from '../support/database-access.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { storeForAll } from '../support/store.ts';
import { EntityRecords } from './repositories/entity-records.ts';
import { ToyEntity } from './toys/toy.entity.ts';
import { type NewToy, type Toy, toyLists } from './toys/toy.schemas.ts';
import { toysModule } from './toys/toys.module.ts';

/**
 * What `Records` and a repository on MikroORM's EntityManager answer is the
 * same, so that one takes the place of the other.
 */

const describeHere = citusLayout ? describe.skip : describe;

describeHere('toys on Records and on MikroORM', () => {
  const store = storeForAll({}, undefined, { more: [toysModule] });
  let all: Array<Repository<Toy, NewToy>> = [];
  let byTime: Array<Repository<Toy, NewToy>> = [];

  beforeAll(async () => {
    all = [
      new Records<Toy, NewToy>(store.database, ToyEntity, toyLists),
      new EntityRecords<Toy, NewToy>(store.database, ToyEntity, toyLists),
    ];
    // A member that lists are filtered and sorted by needs one index.
    const ofTime = { filters: ['madeAt'], ranges: ['madeAt'] } as const;
    byTime = [
      new Records<Toy, NewToy>(store.database, ToyEntity, ofTime),
      new EntityRecords<Toy, NewToy>(store.database, ToyEntity, ofTime),
    ];
    await sql(
      store.database,
      `insert into toy (name, kind, note, made_at)
       select (array['Ball', 'ball', 'BALLOON', 'a_b', 'a%b', 'Ärger', '\\', '']) [1 + n % 8],
         (array['ball', 'bone', 'mouse'])[1 + n % 3], case when n % 2 = 0 then 'a,b' end,
         timestamptz '2026-11-21T12:34:56.789Z' + (n / 4) * interval '1 ms'
       from generate_series(1, 24) n`,
    );
  });

  const at = (ms: number) => new Date(Date.UTC(2026, 10, 21, 12, 34, 56, ms));
  const filters = [
    {},
    { kind: 'ball' },
    { kind_in: ['ball', 'mouse'] },
    { madeAt_gte: at(790), madeAt_lt: at(793) },
    { madeAt_gt: at(790), kind: 'bone' },
    { madeAt_lte: at(791), kind_in: ['bone', 'ball'] },
    { name_prefix: 'bAll' },
    { name_prefix: 'a_', kind: 'mouse' },
    { name_prefix: 'ä' },
  ];
  const sorts = ['id', 'madeAt', 'name'].flatMap((by) => [by, `${by}_desc`]);
  const queries = filters.flatMap((filter) => {
    const [end = ''] = Object.keys(filter).filter((one) =>
      /^(madeAt|name)_/.test(one),
    );
    const own = sorts.filter(
      (sort) => !end || sort.startsWith(end.split('_')[0] ?? ''),
    );
    return own.map((sort) => ({ ...filter, sort }));
  });
  const ofOneTime = ['id', 'id_desc', 'madeAt', 'madeAt_desc'].flatMap(
    (sort) => [
      { madeAt: at(791), sort },
      { madeAt: at(900), sort },
    ],
  );
  const within = { madeAt: at(791), madeAt_lt: at(792), sort: 'madeAt' };

  /** A page with what it tells of others, without the texts of cursors. */
  const shown = async ({ items, hasNext, hasPrevious }: Page<Toy>) => ({
    items: [...items],
    hasNext,
    hasPrevious:
      typeof hasPrevious === 'function' ? await hasPrevious() : hasPrevious,
  });

  test.each([...queries, ...ofOneTime, within])(
    'the pages of %j, forwards and backwards',
    async (query) => {
      const pair = 'madeAt' in query ? byTime : all;
      const counts = pair.map((toys) => toys.count(query as never));
      const [{ count } = { count: 0 }, other] = await Promise.all(counts);
      expect(other).toEqual({ count, isExact: true });
      for (const side of ['after', 'before']) {
        let place: unknown;
        let seen = 0;
        let turn = 0;
        do {
          const paged = { ...query, limit: 5, fromEnd: side === 'before' };
          const asked = {
            ...paged,
            ...(place !== undefined && { [side]: place }),
          };
          const calls = pair.map(() => new Call());
          const pages = await Promise.all(
            pair.map((toys, at) => toys.list(asked as never, calls[at])),
          );
          const [one, other] = await Promise.all(pages.map(shown));
          expect(other).toEqual(one);
          expect(calls[1]?.items).toBe(calls[0]?.items);
          // Each one continues what the other one has begun.
          turn += 1;
          const { items, cursors } = pages[turn % 2] as Page<Toy>;
          const places = cursors ?? items.map(({ id }) => id);
          place = places.at(side === 'after' ? -1 : 0);
          seen += items.length;
        } while (place !== undefined);
        expect(seen).toBe(count);
      }
    },
  );

  test.each([
    { after: 'x', sort: 'name' },
    {
      before: Buffer.from('["madeAt","x","1"]').toString('base64url'),
      sort: 'madeAt',
    },
    { after: 1, before: 9 },
    { name_prefix: 'b', sort: 'madeAt' },
  ])('refuse %j in the same words', async (query) => {
    const refusals = all.map((toys) =>
      toys
        .list({ limit: 5, ...query } as never)
        .catch((error) => error.toBody()),
    );
    const [refusal, other] = await Promise.all(refusals);
    expect(refusal).toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(other).toEqual(refusal);
  });

  test('in one transaction each sees what the other one has added', async () => {
    const call = new Call();
    const frame = { creates: [ToyEntity] };
    const toy = { name: 'new', kind: 'ball', madeAt: at(0) } as NewToy;
    const isRefused = store.database.transaction(call, frame, async (em) => {
      for (const [one, other] of [all, all.toReversed()]) {
        const added = await one?.create(toy, call);
        expect(await other?.find(added?.id, call)).toEqual(added);
      }
      const read = store.database.reading(call, (other) =>
        other.count(ToyEntity, { name: 'new' }),
      );
      expect(await read).toBe(2);
      await em.nativeUpdate(ToyEntity, { name: 'new' }, { note: 'x' });
      expect(
        (await all[0]?.list({ limit: 1, sort: 'id_desc' } as never))?.items,
      ).toMatchObject([{ note: 'x' }]);
      throw new StoreError('CONFLICT', 'None of it is stored.');
    });
    await expect(isRefused).rejects.toThrow('None of it is stored.');
    const left = await all[1]?.count({ name_prefix: 'new' });
    expect(left).toMatchObject({ count: 0 });
  });
});
