// runs: embedded, postgres, pgbouncer, postgres-12

import { Call } from '#engine/call.js';
import { Records } from '#engine/records/records.js';
import { createTestDatabase } from '../support/database.ts';
import { sql } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { afterAll, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { query } from '../support/session.ts';
import { type Store, startStore } from '../support/store.ts';
import {
  members,
  type NewOdd,
  type Odd,
  OddEntity,
  odd,
  odds,
} from './odds/odds.module.ts';

/**
 * What the settings of a database, and rows that others have stored, do to the
 * values of a module with a member of each kind.
 */

const plain = {
  score: 0.1 + 0.2,
  at: '2026-03-29T01:30:00.123Z',
  day: '2026-01-02',
  leftOn: null,
  price: '1.5',
  big: 9007199254740993n,
  count: 3,
  isOdd: true,
  chip: null,
  tone: 'red',
  data: { n: 9007199254740993n },
  marks: ['a,b', ''],
  name: 'Rex',
};
const given = [
  plain,
  { ...plain, score: 1 / 3, at: '0001-01-01T00:00:00Z', day: '0001-01-01' },
  { ...plain, score: 1 / 3, at: '1890-01-01T00:00:00Z', day: '1890-02-03' },
  { ...plain, score: 5e-324, at: '2026-10-25T00:30:00Z', tone: 'Green' },
  { ...plain, score: -1.7976931348623157e308, tone: 'b_2', name: 'a' },
  { ...plain, score: 0.30000000000000004, big: -1, tone: 'a', name: 'B' },
];

const stores: Store[] = [];
afterAll(async () => {
  for (const store of stores) await store.close();
});

async function storeWith(settings: Record<string, string>) {
  const database = await createTestDatabase();
  const set = Object.entries(settings);
  if ('DATABASE_URL' in database.env) {
    const { DATABASE_URL: url } = database.env;
    const name = new URL(url).pathname.slice(1);
    for (const [setting, value] of set)
      await query(url, `alter database ${name} set ${setting} = ${value}`);
  }
  const store = await startStore({}, { database, more: [odds] });
  stores.push(store);
  // The embedded store has one session for all.
  if ('DATA_DIR' in database.env)
    for (const [name, value] of set)
      await sql(store.database, `set ${name} = ${value}`);
  for (const json of given) {
    const { status } = await rest(store, '/v1/odds', { method: 'POST', json });
    expect(status).toBe(201);
  }
  return store;
}

async function overBoth(store: Store) {
  const { json } = await rest(store, '/v1/odds');
  const document = `{ odds { ${members} } }`;
  const { data } = await graphqlThrice(store, { query: document });
  const items = json.map(
    ({ version: _, ...item }: object & { version: 1 }) => item,
  );
  const ofGraphQL = data.odds.map((one: { id: string; big: string }) => ({
    ...one,
    id: Number(one.id),
    big: JSON.parse(one.big),
  }));
  return { items, ofGraphQL };
}

/** The ids of a whole list by REST, one page after the other. */
async function walk(store: Store, path: string) {
  const ids: number[] = [];
  let next: string | undefined = path;
  while (next && ids.length < 20) {
    const { json, headers } = await rest(store, next);
    ids.push(...json.map(({ id }: { id: number }) => id));
    next = /<([^>]+)>; rel="next"/.exec(`${headers.link}`)?.[1];
    if (next) next = next.replace(/^https?:\/\/[^/]+/, '');
  }
  return ids;
}

const german = {
  extra_float_digits: '0',
  datestyle: 'German',
  timezone: '"Europe/Berlin"',
  intervalstyle: 'sql_standard',
  bytea_output: 'escape',
};

describe.each([
  ['its own settings', {}],
  ['the settings of Germany', german],
  [
    'few digits, SQL dates and a zone whose name means another',
    {
      extra_float_digits: '-5',
      datestyle: 'SQL, DMY',
      timezone: '"Asia/Kolkata"',
    },
  ],
  ['PostgreSQL dates', { datestyle: 'Postgres, MDY', timezone: 'Iran' }],
])('a database with %s', (_what, settings) => {
  test('gives each value as it was stored, and each list by pages', async () => {
    const store = await storeWith(settings);
    const { items } = await overBoth(store);
    expect(items).toMatchObject(
      given.map((one) => ({
        ...one,
        at: new Date(one.at).toISOString(),
        price: '1.5000',
      })),
    );
    for (const order of ['score', 'at', 'day', 'price', 'big', 'tone', 'name'])
      for (const end of ['', '_desc']) {
        const path = `/v1/odds?sort=${order}${end}`;
        const all = await walk(store, `${path}&limit=100`);
        expect(all.toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
        expect([path, await walk(store, `${path}&limit=1`)]).toEqual([
          path,
          all,
        ]);
      }
  });
});

describe('a row that others have stored', () => {
  let store: Store;

  test.each([
    ['day', "'infinity'"],
    ['day', "'-infinity'"],
    ['day', "'0044-03-15 BC'"],
    ['day', "'12026-01-01'"],
    ['left_on', "'infinity'"],
    ['at', "'infinity'"],
    ['at', "'-infinity'"],
    ['at', "'12026-01-01T00:00:00Z'"],
    ['at', "'0044-03-15 00:00:00 BC'"],
    ['score', "'NaN'"],
    ['score', "'infinity'"],
    ['price', "'NaN'"],
    ['tone', "'x,y'"],
    ['tone', "'red,Green'"],
    ['tone', "'blue'"],
    ['tone', "''"],
    ['marks', `'{a,NULL}'`],
    ['marks', `'{{a},{b}}'`],
  ])(
    'with %s = %s is refused by both APIs, and moves no value',
    async (column, value) => {
      store ??= await storeWith({});
      await sql(
        store.database,
        `insert into odd (score, at, day, left_on, price, big, count, is_odd, tone, marks, name)
        select score, at, day, day, price, big, count, is_odd, tone, marks, name from odd where id = 1`,
      );
      await sql(
        store.database,
        `update odd set ${column} = ${value} where id = (select max(id) from odd)`,
      );
      const [[id = ''] = []] = await sql<[id: string]>(
        store.database,
        'select max(id)::text from odd',
      );
      const document = `{ odds { ${members} } }`;
      const { errors } = await graphqlThrice(store, { query: document });
      const list = await rest(store, '/v1/odds');
      const one = await rest(store, `/v1/odds/${id}`);
      expect([list.status, one.status, errors?.[0]?.extensions?.code]).toEqual([
        500,
        500,
        'INTERNAL_SERVER_ERROR',
      ]);
      const records = new Records<Odd, NewOdd>(
        store.database,
        OddEntity,
        odd.lists,
      );
      await expect(records.find(BigInt(id), new Call())).rejects.toThrow(
        `The row ${id} cannot be read: odd.${column} has a value that no client could have given.`,
      );
      await sql(store.database, `delete from odd where id = ${id}`);
      const { items, ofGraphQL } = await overBoth(store);
      expect(items).toHaveLength(6);
      expect(ofGraphQL).toHaveLength(6);
    },
  );
});

describe.each([
  ['without keys', false],
  ['with a key each', true],
])('of creations that share a statement, %s', (_, hasKeys) => {
  /** @returns the outcomes of ten creations, the fourth with more members */
  async function outcomesWith(store: Store, more: object) {
    const records = new Records<Odd, NewOdd>(
      store.database,
      OddEntity,
      odd.lists,
    );
    const at = new Date(plain.at);
    const creations = Array.from({ length: 10 }, (_, place) => {
      const call = new Call();
      const claim = { keyId: 7, operation: 'x', hash: Buffer.alloc(32, place) };
      if (hasKeys) call.claim = claim;
      const input = { ...plain, at, name: `odd ${place}` };
      const item = place === 3 ? { ...input, ...more } : input;
      return records.create(item as never, call).then(
        ({ name }) => name,
        ({ message }) => message,
      );
    });
    return Promise.all(creations);
  }
  const others: unknown[] = Array.from({ length: 10 }, (_, at) => `odd ${at}`);

  test('one that cannot be shown fails alone', async () => {
    const store = await storeWith({});
    const clause = `when (new.name = 'unseen') execute function spoil()`;
    for (const statement of [
      `create function spoil() returns trigger language plpgsql as $$ begin
        new.price := 'NaN'; return new; end $$`,
      `create trigger spoil before insert on odd for each row ${clause}`,
    ])
      await sql(store.database, statement);
    const told = expect.stringContaining('odd.price has a value that no');
    // The second ones have the answers of the first.
    for (const _ of hasKeys ? [1, 2] : [1])
      expect(await outcomesWith(store, { name: 'unseen' })).toEqual(
        others.with(3, told as never),
      );
  });

  test('one that no statement can have fails alone', async () => {
    const store = await storeWith({});
    expect(await outcomesWith(store, { at: new Date(Number.NaN) })).toEqual(
      others.with(3, 'Invalid time value'),
    );
  });
});
