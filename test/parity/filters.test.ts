// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference

import { defineEntity } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { ListInterpreter } from '#engine/records/lists/query.js';
import { Records } from '#engine/records/records.js';
import { Table } from '#engine/records/rows/table.js';
import {
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Filters by several values, null, ranges and prefixes, on both APIs. */

type Stay = ItemOf<typeof stay>;
type NewStay = NewOf<typeof stay>;

const states = { booked: 'booked', gone: 'gone', here: 'here' } as const;
const stay = resource({
  name: 'Stay',
  description: 'An animal stays over night.',
  path: '/stays',
  operations: ['list', 'create', 'follow'],
  members: {
    name: textSchema({ description: 'Its name.' }),
    state: enumSchema('StayState', states, 'How far it is.'),
    room: Type.Optional(nullable(int64Schema({ description: 'Where.' }))),
    at: moment({ description: 'When it comes.' }),
    weight: int64Schema({ description: 'In grams.' }),
  },
  in: ['state', 'room'],
  nulls: ['room'],
  combinations: [['state'], ['room'], ['state', 'room']],
  ranges: ['at', 'weight'],
  prefixes: ['name'],
});

const keys = {
  at: '"at"',
  weight: '"weight"',
  name: 'lower("name") collate "C"',
};
const filters = {
  all: '',
  state: '"state", ',
  room: '"room", ',
  both: '"state", "room", ',
};
const indexes = Object.entries({ ...keys, id: '' }).flatMap(([order, key]) =>
  Object.entries(filters)
    .filter(([filter]) => filter !== 'all' || order !== 'id')
    .map(([filter, columns]) => ({
      name: `stay_${filter}_${order}`,
      expression: `create index "stay_${filter}_${order}" on "stay" (${columns}${key && `${key}, `}"id")`,
    })),
);
const StayEntity = defineEntity({
  name: 'Stay',
  tableName: 'stay',
  properties: stay.columns,
  indexes,
});

class CreateStay extends Migration {
  override up(): void {
    this.addSql(`create table "stay" ("id" bigserial primary key, "name" text not null,
      "state" text not null, "room" bigint, "at" timestamptz not null,
      "weight" bigint not null, "version" int not null default 1)`);
    for (const { expression } of indexes) this.addSql(expression);
  }
}

const stays: Module = {
  tag: { name: 'Stays', description: 'Nights.' },
  entities: [StayEntity],
  migrations: [{ name: '2026_11_28_100000_create_stay', class: CreateStay }],
  open: ({ database }) => ({
    resources: [
      stay.serve(new Records<Stay, NewStay>(database, StayEntity, stay.lists)),
    ],
  }),
};

const store = storeForAll({}, insertAll, { more: [stays] });

const greatest = '9223372036854775807';
const least = '-9223372036854775808';
/** Ids 1 to 8, in this order. */
const rows = [
  ['Rex', 'booked', '1', '2026-01-01', '10'],
  ['rex', 'here', '2', '2026-01-02', '-5'],
  ['REXA', 'gone', null, '2026-01-02', greatest],
  ['Re%x', 'here', null, '2026-01-03', least],
  ['re_x\\', 'booked', greatest, '2026-01-04', '10'],
  ['Ärger', 'gone', '1', '0001-01-01', '0'],
  ['', 'here', '2', '9999-12-31', '7'],
  ['re\u{10ffff}y', 'here', '1', '2026-01-05', '8'],
];

async function insertAll() {
  for (const row of rows)
    await sql(
      store.database,
      'insert into stay (name, state, room, at, weight) values ($1, $2, $3, $4, $5)',
      row,
    );
}

const idsOf = (items: Array<{ id: unknown }>) =>
  items.map(({ id }) => Number(id));

async function overRest(query: string) {
  const { status, json } = await rest(store, `/v1/stays?${query}`);
  return status === 200 ? idsOf(json) : `${status} ${json.message}`;
}

async function overGraphQL(parameters: string) {
  const asked = parameters && `(${parameters})`;
  const size = asked.includes('before') ? 'last' : 'first';
  const query = `{ stays${asked} { id } staysConnection${asked.replace('limit', size)} { nodes { id } totalCount } }`;
  const { text } = await graphqlThrice(store, { query });
  const { data, errors } = JSON.parse(text);
  if (!errors) {
    const { nodes, totalCount } = data.staysConnection;
    const ids = idsOf(data.stays);
    expect(idsOf(nodes)).toEqual(ids);
    if (!/limit|after|before/.test(parameters))
      expect(totalCount).toBe(ids.length);
    return ids;
  }
  const [{ message, extensions = { status: 400 } }] = errors;
  return `${extensions.status ?? 400} ${message}`;
}

const t = (day: string) => `${day}T00:00:00Z`;

describe('a list', () => {
  test.each<[query: string, parameters: string, ids: number[]]>([
    ['state_in=here', 'state_in: [here]', [2, 4, 7, 8]],
    [
      'state_in=here&state_in=gone',
      'state_in: [here, gone]',
      [2, 3, 4, 6, 7, 8],
    ],
    ['state_in=here&state_in=here', 'state_in: here', [2, 4, 7, 8]],
    [
      'state_in=here&state_in=gone&sort=id_desc&limit=3',
      'state_in: [here, gone], sort: id_desc, limit: 3',
      [8, 7, 6],
    ],
    [
      'state_in=here&state_in=gone&after=4',
      'state_in: [here, gone], after: "4"',
      [6, 7, 8],
    ],
    [
      'state_in=here&state_in=gone&before=7&limit=2',
      'state_in: [here, gone], before: "7", limit: 2',
      [4, 6],
    ],
    [
      'state_in=booked&state_in=here&room_in=1&room_in=2',
      'state_in: [booked, here], room_in: [1, 2]',
      [1, 2, 7, 8],
    ],
    [`room_in=${greatest}`, `room_in: ["${greatest}"]`, [5]],
    [`room_in=${least}`, `room_in: ["${least}"]`, []],
    ['room_is_null=true', 'room_is_null: true', [3, 4]],
    [
      'room_is_null=true&sort=weight',
      'room_is_null: true, sort: weight',
      [4, 3],
    ],
    ['room_is_null=true&state=gone', 'room_is_null: true, state: gone', [3]],
    ['room_is_null=true&after=3', 'room_is_null: true, after: "3"', [4]],
    [
      `at_gte=${t('2026-01-02')}`,
      `at_gte: "${t('2026-01-02')}"`,
      [2, 3, 4, 5, 8, 7],
    ],
    [`at_gt=${t('2026-01-02')}`, `at_gt: "${t('2026-01-02')}"`, [4, 5, 8, 7]],
    [`at_lte=${t('2026-01-02')}`, `at_lte: "${t('2026-01-02')}"`, [6, 1, 2, 3]],
    [`at_lt=${t('2026-01-02')}`, `at_lt: "${t('2026-01-02')}"`, [6, 1]],
    [
      `at_gte=${t('0001-01-01')}&at_lt=${t('2026-01-04')}&sort=at_desc`,
      `at_gte: "${t('0001-01-01')}", at_lt: "${t('2026-01-04')}", sort: at_desc`,
      [4, 3, 2, 1, 6],
    ],
    [
      `at_gte=${t('2026-01-03')}&at_lt=${t('2026-01-01')}`,
      `at_gte: "${t('2026-01-03')}", at_lt: "${t('2026-01-01')}"`,
      [],
    ],
    [`weight_gte=${greatest}`, `weight_gte: "${greatest}"`, [3]],
    [`weight_gt=${greatest}`, `weight_gt: "${greatest}"`, []],
    [`weight_lte=${least}`, `weight_lte: "${least}"`, [4]],
    [`weight_lt=${least}`, `weight_lt: "${least}"`, []],
    [
      'weight_gte=7&weight_lte=10',
      'weight_gte: 7, weight_lte: 10',
      [7, 8, 1, 5],
    ],
    [
      'weight_gte=7&state_in=here&state_in=booked',
      'weight_gte: 7, state_in: [here, booked]',
      [7, 8, 1, 5],
    ],
    ['name_prefix=REX', 'name_prefix: "REX"', [1, 2, 3]],
    [
      'name_prefix=rex&sort=name_desc',
      'name_prefix: "rex", sort: name_desc',
      [3, 2, 1],
    ],
    ['name_prefix=re', 'name_prefix: "re"', [4, 5, 1, 2, 3, 8]],
    ['name_prefix=rexa&state=gone', 'name_prefix: "rexa", state: gone', [3]],
    ['name_prefix=re%25', 'name_prefix: "re%"', [4]],
    ['name_prefix=re_', 'name_prefix: "re_"', [5]],
    ['name_prefix=re_x%5C', 'name_prefix: "re_x\\\\"', [5]],
    ['name_prefix=re%F4%8F%BF%BF', 'name_prefix: "re\u{10ffff}"', [8]],
    ['name_prefix=', 'name_prefix: ""', [7, 4, 5, 1, 2, 3, 8, 6]],
    ['name_prefix=%27', `name_prefix: "'"`, []],
    ['sort=name&limit=2', 'sort: name, limit: 2', [7, 4]],
    ['at=2026', '', [1, 2, 3, 4, 5, 6, 7, 8]],
    ['__proto__=1&constructor=2&state__in=3', '', [1, 2, 3, 4, 5, 6, 7, 8]],
  ])('%s', async (query, parameters, ids) => {
    expect(await overRest(query)).toEqual(ids);
    expect(await overGraphQL(parameters)).toEqual(ids);
  });

  const among = Array.from({ length: 21 }, (_, at) => at);
  const many = Array.from({ length: 10_000 }, (_, at) => at);
  const ofAmong =
    '400 room_in must be 1 to 20 values, each an integer between -9223372036854775808 and 9223372036854775807';
  test.each<[query: string, parameters: string, message: string]>([
    [
      'state_in=',
      '',
      '400 state_in must be 1 to 20 values, each one of booked, gone, here.',
    ],
    [
      'state_in=here,gone',
      '',
      '400 state_in must be 1 to 20 values, each one of booked, gone, here.',
    ],
    [
      '',
      'state_in: []',
      '400 state_in must be 1 to 20 values, each one of booked, gone, here.',
    ],
    [
      among.map((at) => `room_in=${at}`).join('&'),
      `room_in: [${among}]`,
      `${ofAmong}.`,
    ],
    ['room_in=1&room_in=x', 'room_in: ["1", "x"]', `${ofAmong}.`],
    [
      `${among
        .slice(1, 12)
        .map((at) => `room_in=${at}`)
        .join('&')}&state_in=here&state_in=gone`,
      `room_in: [${among.slice(1, 12)}], state_in: [here, gone]`,
      '400 The filters by several values have 22 combinations, at most 20 are allowed.',
    ],
    ['state=here&state=gone', '', '400 state must be given once.'],
    [
      'state=here&state_in=gone',
      'state: here, state_in: [gone]',
      '400 state and state_in exclude each other.',
    ],
    [
      'room=1&room_is_null=true',
      'room: 1, room_is_null: true',
      '400 room and room_is_null exclude each other.',
    ],
    [
      'room_is_null=false',
      'room_is_null: false',
      '400 room_is_null must be true.',
    ],
    ['room_is_null=1', '', '400 room_is_null must be true or false.'],
    [
      'room_is_null=true&state=gone&sort=at',
      'room_is_null: true, state: gone, sort: at',
      '400 room_is_null goes with other filters, and with own rows, in the order of id only, not of at.',
    ],
    [
      `at_gte=${t('2026-01-01')}&sort=id`,
      `at_gte: "${t('2026-01-01')}", sort: id`,
      '400 at_gte goes with the order at or at_desc, not id.',
    ],
    [
      `at_gte=${t('2026-01-01')}&weight_lt=1`,
      `at_gte: "${t('2026-01-01')}", weight_lt: 1`,
      '400 at_gte and weight_lt exclude each other.',
    ],
    [
      `at_gte=${t('2026-01-01')}&at_gt=${t('2026-01-01')}`,
      `at_gte: "${t('2026-01-01')}", at_gt: "${t('2026-01-01')}"`,
      '400 at_gte and at_gt exclude each other.',
    ],
    [
      'at_gte=2026-01-01',
      'at_gte: "2026-01-01"',
      '400 at_gte must be a date and time like 2030-12-05T00:00:00.000Z.',
    ],
    [
      'weight_gte=9223372036854775808',
      'weight_gte: "9223372036854775808"',
      '400 weight_gte must be an integer between -9223372036854775808 and 9223372036854775807.',
    ],
    [
      'name_prefix=%00',
      'name_prefix: "\\u0000"',
      '400 name_prefix must be free of U+0000 and of lone surrogates.',
    ],
    [
      `name_prefix=${'a'.repeat(1001)}`,
      `name_prefix: "${'a'.repeat(1001)}"`,
      '400 name_prefix must be at most 1000 characters long.',
    ],
    [
      'after=1&before=5',
      'after: "1", before: "5"',
      '400 after and before exclude each other.',
    ],
    [
      'before=x&sort=at',
      'before: "x", sort: at',
      '400 before is not a cursor of this list sorted by at: it must be that of its first item.',
    ],
  ])('%s is refused', async (query, parameters, message) => {
    if (query) expect(await overRest(query)).toBe(message);
    if (parameters) expect(await overGraphQL(parameters)).toBe(message);
  });

  test.each([
    ['room_in', '[ID!]', among.map(String), ofAmong.slice(4)],
    ['room_in', '[ID!]', many.map(String), 'may cost too much: 10021'],
    ['name_prefix', 'String', '\ud800', 'name_prefix must be free of U+0000'],
  ])('by a variable %s is refused', async (name, type, value, message) => {
    const query = `query ($value: ${type}) { stays(${name}: $value) { id } }`;
    const { text } = await graphqlThrice(store, {
      query,
      variables: { value },
    });
    expect(JSON.parse(text).errors[0].message).toContain(message);
  });

  test('a value that is refused is refused after a list of the same filters, too', async () => {
    const statusOf = async (value: boolean) =>
      (await rest(store, `/v1/stays?room_is_null=${value}`)).status;
    expect([await statusOf(true), await statusOf(false)]).toEqual([200, 400]);
  });

  test('that is followed has no range', async () => {
    const headers = { accept: 'text/event-stream' };
    const path = `/v1/stays?at_gte=${t('2026-01-01')}`;
    expect(await rest(store, path, { headers })).toMatchObject({
      status: 400,
      json: { message: 'at_gte goes with the order at or at_desc, not id.' },
    });
  });
});

const cursorOf = (...place: unknown[]) =>
  Buffer.from(JSON.stringify(place)).toString('base64url');

describe('a cursor', () => {
  test('from outside of the range leaves the range as it is', async () => {
    const from = `weight_gte=7&weight_lte=10`;
    const before = cursorOf('weight', '-5', '2');
    expect(await overRest(`${from}&after=${before}`)).toEqual([7, 8, 1, 5]);
    const within = cursorOf('weight', '8', '8');
    expect(await overRest(`${from}&after=${within}`)).toEqual([1, 5]);
    const beyond = cursorOf('weight', greatest, '3');
    expect(await overRest(`${from}&after=${beyond}`)).toEqual([]);
    expect(await overRest(`${from}&before=${beyond}`)).toEqual([7, 8, 1, 5]);
    const lower = `weight_gt=7&after=${cursorOf('weight', '7', '1')}`;
    expect(await overRest(lower)).toEqual([8, 1, 5, 3]);
  });

  test.each([
    ['weight', cursorOf('at', '7', '7')],
    ['at_desc', cursorOf('weight', '7', '7')],
    ['name', cursorOf('weight', '7', '7')],
    ['weight', cursorOf('id', '7', '7')],
    ['weight', '7'],
  ])('of another order is refused in the order %s', async (sort, cursor) => {
    for (const parameter of ['after', 'before']) {
      const message = `${parameter} is not a cursor of this list sorted by ${sort}`;
      const query = `sort=${sort}&${parameter}=${cursor}`;
      expect(await overRest(query)).toContain(message);
      const ofConnection = `{ staysConnection(sort: ${sort}, ${parameter}: "${cursor}") { nodes { id } } }`;
      const { text } = await graphqlThrice(store, { query: ofConnection });
      expect(text).toContain(message);
    }
  });

  test.each([
    ['sort=id', '8', [7, 8]],
    ['sort=id', greatest, [7, 8]],
    ['sort=id_desc', '1', [2, 1]],
    ['sort=id_desc', least, [2, 1]],
    ['sort=weight', cursorOf('weight', greatest, '3'), [5, 3]],
    ['sort=weight', cursorOf('weight', greatest, greatest), [5, 3]],
    ['sort=weight_desc', cursorOf('weight', least, '4'), [2, 4]],
  ])(
    'behind all of %s leads back to the last ones: %s',
    async (order, after, ids) => {
      const query = `${order}&limit=2`;
      const end = await rest(store, `/v1/stays?${query}&after=${after}`);
      expect(end.json).toEqual([]);
      const back = await rest(store, `${pathOf(end.headers.link, 'prev')}`);
      expect(idsOf(back.json)).toEqual(ids);
    },
  );

  test('that is too long is refused', async () => {
    const after = cursorOf('name', 'a'.repeat(20_000), '1');
    const query = `{ staysConnection(sort: name, after: "${after}") { nodes { id } } }`;
    const { text } = await graphqlThrice(store, { query });
    expect(JSON.parse(text).errors[0].message).toContain(
      'after is not a cursor',
    );
  });
});

interface Connection {
  edges: Array<{ cursor: string; node: { id: string } }>;
  pageInfo: { hasPreviousPage: boolean; startCursor: string };
}

const pathOf = (link: unknown, rel: string) =>
  new RegExp(`<https?://[^/>]+([^>]+)>; rel="${rel}"`).exec(`${link}`)?.[1];

describe.each([
  ['sort=id', 'sort: id', [1, 2, 3, 4, 5, 6, 7, 8]],
  ['sort=id_desc', 'sort: id_desc', [8, 7, 6, 5, 4, 3, 2, 1]],
  ['sort=at', 'sort: at', [6, 1, 2, 3, 4, 5, 8, 7]],
  ['sort=name_desc', 'sort: name_desc', [6, 8, 3, 2, 1, 5, 4, 7]],
  ['weight_lte=10', 'weight_lte: 10', [4, 2, 6, 7, 8, 1, 5]],
  [
    'state_in=here&state_in=gone&sort=at_desc',
    'state_in: [here, gone], sort: at_desc',
    [7, 8, 4, 3, 2, 6],
  ],
])('pages by %s', (query, parameters, ids) => {
  test('lead forth and back', async () => {
    let path: string | undefined = `/v1/stays?${query}&limit=3`;
    const seen: number[][] = [];
    for (; path; ) {
      const { json, headers }: Awaited<ReturnType<typeof rest>> = await rest(
        store,
        path,
      );
      seen.push(idsOf(json));
      expect(pathOf(headers.link, 'prev') !== undefined).toBe(seen.length > 1);
      const next = pathOf(headers.link, 'next');
      if (!next) break;
      path = next;
    }
    expect(seen.flat()).toEqual(ids);
    const back: number[][] = [];
    for (; path; ) {
      const { json, headers }: Awaited<ReturnType<typeof rest>> = await rest(
        store,
        path,
      );
      back.unshift(idsOf(json));
      path = pathOf(headers.link, 'prev');
    }
    expect(back.flat()).toEqual(ids);
  });

  test('of a connection lead back from its end', async () => {
    const back: number[] = [];
    for (let before: string | null = null; ; ) {
      const document = `query ($before: String) { staysConnection(last: 2, before: $before, ${parameters}) {
        edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;
      const { text }: { text: string } = await graphqlThrice(store, {
        query: document,
        variables: { before },
      });
      const { edges, pageInfo }: Connection =
        JSON.parse(text).data.staysConnection;
      back.unshift(
        ...idsOf(edges.map(({ node }: { node: { id: string } }) => node)),
      );
      expect(pageInfo).toEqual({
        hasNextPage: before !== null,
        hasPreviousPage: back.length < ids.length,
        startCursor: edges.at(0)?.cursor,
        endCursor: edges.at(-1)?.cursor,
      });
      if (!pageInfo.hasPreviousPage) break;
      before = pageInfo.startCursor;
    }
    expect(back).toEqual(ids);
  });
});

test('the same items forwards and backwards, at the same moment', async () => {
  const query = `{ first: staysConnection(first: 2, sort: id_desc) { nodes { id } }
    last: staysConnection(last: 2, sort: id) { nodes { id } }
    lastByWeight: staysConnection(last: 2, sort: weight) { nodes { id } }
    firstByWeight: staysConnection(first: 2, sort: weight_desc) { nodes { id } } }`;
  const { text } = await graphqlThrice(store, { query });
  const { first, last, lastByWeight, firstByWeight } = JSON.parse(text).data;
  expect([idsOf(first.nodes), idsOf(last.nodes)]).toEqual([
    [8, 7],
    [7, 8],
  ]);
  expect(idsOf(lastByWeight.nodes)).toEqual([5, 3]);
  expect(idsOf(firstByWeight.nodes)).toEqual([3, 5]);
});

test('a page before a place is right while rows come and go', async () => {
  const page = async (query: string) => {
    const { json, headers } = await rest(
      store,
      `/v1/stays?sort=id&limit=2&${query}`,
    );
    return [
      idsOf(json),
      pathOf(headers.link, 'prev') !== undefined,
      pathOf(headers.link, 'next') !== undefined,
    ];
  };
  expect(await page('before=5')).toEqual([[3, 4], true, true]);
  expect(await page('before=1')).toEqual([[], false, true]);
  expect(await page('after=8')).toEqual([[], true, false]);
  await sql(store.database, 'delete from stay where id in (1, 2, 3, 8)');
  // A link may lead to an empty page; `hasPreviousPage` is exact.
  expect(await page('after=3')).toEqual([[4, 5], true, true]);
  expect(await page('before=4')).toEqual([[], false, true]);
  const query = `{ staysConnection(after: "3") { pageInfo { hasPreviousPage } } }`;
  const { text } = await graphqlThrice(store, { query });
  expect(text).toContain('"hasPreviousPage":false');
  expect(await page('before=5')).toEqual([[4], false, true]);
  expect(await page('before=8')).toEqual([[6, 7], true, false]);
  await sql(
    store.database,
    `insert into stay (id, name, state, at, weight) values (3, 'back', 'here', now(), 1)`,
  );
  expect(await page('after=3')).toEqual([[4, 5], true, true]);
  await sql(store.database, 'truncate stay restart identity');
  await insertAll();
});

test('first and last exclude what belongs to the other', async () => {
  const message = async (parameters: string) => {
    const query = `{ staysConnection(${parameters}) { nodes { id } } }`;
    const { text } = await graphqlThrice(store, { query });
    return JSON.parse(text).errors?.[0].message;
  };
  expect(await message('last: 2, after: "1"')).toBe(
    'last and after exclude each other.',
  );
  for (const first of [0, 3, 20])
    expect(await message(`last: 2, first: ${first}`)).toBe(
      'first and last exclude each other.',
    );
  for (const first of [0, 2, 20])
    expect(await message(`first: ${first}, before: "5"`)).toBe(
      'first and before exclude each other.',
    );
  for (const absent of ['first: null, last: 2', 'last: null, first: 2'])
    expect(await message(absent)).toBeUndefined();
  expect(await message('first: null, before: "5"')).toBeUndefined();
  expect(await message('last: -1')).toBe(
    'last must be an integer between 0 and 100.',
  );
  expect(await message('last: 0')).toBeUndefined();
});

test('of the statements of a collection, 200 are prepared', () => {
  const described = store.database.orm.getMetadata(StayEntity);
  const listings = new ListInterpreter(new Table(described), stay.lists);
  const ofStates = [{}, { state: 'here' }, { state_in: ['here'] }];
  const ofRooms = [{}, { room: 1n }, { room_in: [1n] }];
  const at = new Date();
  const begins = [{}, { at_gt: at }, { at_gte: at }];
  const ends = [{}, { at_lt: at }, { at_lte: at }];
  const places = [{}, { fromEnd: true }];
  const shapes = ofStates.flatMap((state) =>
    ofRooms.flatMap((room) =>
      begins.flatMap((begin) =>
        ends.flatMap((end) =>
          places.map((place) => {
            const query = { ...state, ...room, ...begin, ...end, ...place };
            return listings.interpret(query).shape;
          }),
        ),
      ),
    ),
  );
  const statements = shapes.flatMap(({ page, count }) => [page, count()]);
  const prepared = statements.filter(({ isRare }) => !isRare);
  const names = new Set(prepared.map(({ name }) => name));
  expect(names.size).toBeLessThanOrEqual(200);
  expect(prepared.length).toBeLessThan(statements.length);
});
