// runs: embedded, postgres, pgbouncer

import { Type } from 'typebox';
import { cursorOf } from '#engine/records/lists/cursor.js';
import { Records } from '#engine/records/records.js';
import { int64 } from '#engine/validation/int64.js';
import { pageQueryMembers, sortSchema } from '#engine/validation/page.js';
import { validator } from '#engine/validation/validator.js';
import { sql } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { CheckupEntity } from './checkups/checkup.entity.ts';
import type { Checkup } from './checkups/checkup.schemas.ts';
import { checkupsModule } from './checkups/checkups.module.ts';
import { ToyEntity } from './toys/toy.entity.ts';
import type { Toy } from './toys/toy.schemas.ts';
import { toysModule } from './toys/toys.module.ts';

/** Lists in the orders that their collection declares: toys by age. */

const store = storeForAll({}, undefined, {
  more: [toysModule, checkupsModule],
});

// Several were made in the same microsecond, and some in the same millisecond.
const ages = [
  '2026-11-21T10:00:00.000002Z',
  '2026-11-21T10:00:00.000001Z',
  '2026-11-20T10:00:00Z',
  '2026-11-21T10:00:00.000001Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
];
const up = ['5', '3', '2', '4', '1', '6'];

beforeEach(async () => {
  await sql(store.database, 'truncate toy restart identity');
  const text = `insert into toy (name, kind, made_at)
    select 'toy', (array['ball', 'bone'])[1 + place % 2], at::timestamptz
    from unnest($1::text[]) with ordinality as given (at, place) order by place`;
  await sql(store.database, text, [ages]);
});

const idsOf = (items: Array<{ id: unknown }>) => items.map(({ id }) => `${id}`);
const list = (query: string) => rest(store, `/v1/toys?${query}`);
const pathOf = (link: unknown) =>
  /^<\w+:\/\/[^/]+([^>]+)>; rel="next"/.exec(`${link}`)?.[1];

/** The ids of all pages, by their links. */
async function walk(query: string, between = async () => {}) {
  const ids: string[] = [];
  for (let path: string | undefined = `/v1/toys?${query}`; path; ) {
    const { status, json, headers } = await rest(store, path);
    expect(status).toBe(200);
    ids.push(...idsOf(json as Array<{ id: number }>));
    path = pathOf(headers.link);
    await between();
  }
  return ids;
}

async function walkConnection(parameters: string) {
  const ids: string[] = [];
  const query = `query ($after: String) { toysConnection(first: 2, after: $after, ${parameters}) {
    edges { cursor node { id } } pageInfo { hasNextPage endCursor } } }`;
  for (let after: string | null = null, isLast = false; !isLast; ) {
    const request = { query, variables: { after } };
    const answer: { text: string } = await graphqlThrice(store, request);
    const { edges, pageInfo } = JSON.parse(answer.text).data.toysConnection;
    ids.push(...idsOf(edges.map(({ node }: { node: { id: string } }) => node)));
    expect(edges.at(-1)?.cursor).toBe(pageInfo.endCursor);
    after = pageInfo.endCursor;
    isLast = !pageInfo.hasNextPage;
  }
  return ids;
}

describe.each([
  ['madeAt', '', up],
  ['madeAt_desc', '', up.toReversed()],
  ['madeAt', 'bone', ['5', '3', '1']],
  ['madeAt_desc', 'bone', ['1', '3', '5']],
  ['id', '', ['1', '2', '3', '4', '5', '6']],
  ['id_desc', 'ball', ['6', '4', '2']],
])('sorted by %s, of the kind "%s"', (sort, kind, ids) => {
  const query = `sort=${sort}${kind && `&kind=${kind}`}`;
  const parameters = `sort: ${sort}${kind && `, kind: ${kind}`}`;

  test.each([1, 2, 4, 100])('pages of %i lead through all', async (limit) =>
    expect(await walk(`${query}&limit=${limit}`)).toEqual(ids),
  );

  test('GraphQL has the same, as a list and as a connection', async () => {
    const { data } = await graphqlThrice(store, {
      query: `{ toys(${parameters}) { id } }`,
    });
    expect(idsOf(data.toys)).toEqual(ids);
    expect(await walkConnection(parameters)).toEqual(ids);
  });
});

test('a walk has each toy once while others come and go, and its own last one goes', async () => {
  let turn = 0;
  const between = async () => {
    turn += 1;
    const [before, later] = ['2020-01-01Z', '2026-12-01Z'].map(
      (at) =>
        `insert into toy (name, kind, made_at) values ('new', 'ball', '${at}')`,
    );
    await sql(store.database, `${turn === 1 ? before : later}`);
    if (turn === 1) await sql(store.database, 'delete from toy where id = 3');
  };
  // Toy 3 was the last of the first page.
  expect((await walk('sort=madeAt&limit=2', between)).slice(0, 5)).toEqual(
    up.slice(0, 5),
  );
});

test('lists of different orders that are read together keep their own', async () => {
  const queries = [
    'sort=madeAt',
    'sort=madeAt_desc',
    'sort=id',
    'kind=bone&sort=madeAt',
    'sort=madeAt',
  ];
  const read = await Promise.all(
    queries.map((query) => list(`${query}&limit=2`)),
  );
  expect(read.map(({ json }) => idsOf(json as Array<{ id: number }>))).toEqual([
    ['5', '3'],
    ['6', '1'],
    ['1', '2'],
    ['5', '3'],
    ['5', '3'],
  ]);
  const next = read.map(({ headers }) => pathOf(headers.link) ?? '');
  const further = await Promise.all(next.map((path) => rest(store, path)));
  expect(
    further.map(({ json }) => idsOf(json as Array<{ id: number }>)),
  ).toEqual([['2', '4'], ['4', '2'], ['3', '4'], ['1'], ['2', '4']]);
});

const encoded = (place: unknown) =>
  Buffer.from(JSON.stringify(place)).toString('base64url');

test.each([
  ['madeAt', '7'],
  ['madeAt', 'rex'],
  ['madeAt', encoded(null)],
  ['madeAt', encoded(['name', 'toy', '1'])],
  ['madeAt', encoded(['madeAt', 'yesterday-ish', '1'])],
  ['madeAt', encoded(['madeAt', '2026-13-01', '1'])],
  ['madeAt', encoded(['madeAt', '\u0000', '1'])],
  ['madeAt_desc', encoded(['madeAt', '2026-11-21', '9223372036854775808'])],
  ['id', encoded(['madeAt', '2026-11-21', '1'])],
])('an order by %s refuses the cursor %s', async (sort, after) => {
  const message = `after is not a cursor of this list sorted by ${sort}: it must be that of its last item.`;
  const [refused, other] = await Promise.all([
    list(`sort=${sort}&after=${after}`),
    list('sort=madeAt&limit=1'),
  ]);
  expect(refused).toMatchObject({ status: 400, json: { message } });
  expect(other.status).toBe(200);
  const before = await list(`sort=${sort}&before=${after}`);
  expect(before.json.message).toBe(
    message.replace('after', 'before').replace('last', 'first'),
  );
  const query = `{ toys(sort: ${sort}, after: "${after}") { id } }`;
  const { errors } = JSON.parse((await graphqlThrice(store, { query })).text);
  expect(errors[0]).toMatchObject({
    message,
    extensions: { code: 'BAD_USER_INPUT' },
  });
});

test('the longest cursor of a text is one that the list takes', () => {
  const after = cursorOf(
    { id: int64.max, value: '\u0001'.repeat(1000) },
    'name',
  );
  const members = pageQueryMembers('toy', sortSchema('NameSort', ['name']));
  const queryOf = validator(Type.Object(members), { isLenient: true });
  expect(queryOf({ after, sort: 'name' })).toMatchObject({ after });
});

test('an order that its Records lack is named in the log', async () => {
  const toys = new Records<Toy, never>(store.database, ToyEntity);
  const query = { limit: 1, sort: 'madeAt' } as never;
  await expect(toys.list(query)).rejects.toThrow(
    'toy is not sorted by madeAt: name it in the orders of its Records.',
  );
});

test('the start names the indexes that an order lacks, and a member that may be null', () => {
  const checkups = () =>
    new Records<Checkup, never>(store.database, CheckupEntity, {
      filters: ['petId'],
      orders: ['reason'],
    });
  expect(checkups).toThrow(
    `Each combination of the filters of checkup sorted by reason needs an index; the entity lacks { name: 'checkup_reason_id', expression: 'create index "checkup_reason_id" on "checkup" (lower("reason") collate "C", "id")' }, { name: 'checkup_petId_reason_id', expression: 'create index "checkup_petId_reason_id" on "checkup" ("pet_id", lower("reason") collate "C", "id")' }.`,
  );
  const toys = () =>
    new Records<Toy, never>(store.database, ToyEntity, { orders: ['note'] });
  expect(toys).toThrow('toy has an order by note, which may be null.');
});
