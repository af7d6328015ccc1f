// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference

import { sql, stock } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Newest first: the lists of both APIs in the order that `sort` names. */

const store = storeForAll({}, async () => {
  await stock(store.database, 7);
  await sql(
    store.database,
    `update pet set status = 'sold' where id in (2, 5)`,
  );
});

const idsOf = (items: Array<{ id: unknown }>) => items.map(({ id }) => `${id}`);

async function overRest(query: string) {
  const { json } = await rest(store, `/v1/pets?${query}`);
  return idsOf(json as Array<{ id: number }>);
}

async function overGraphQL(parameters: string) {
  const asked = parameters ? `(${parameters})` : '';
  const query = `{ pets${asked} { id } petsConnection${asked.replace('limit', 'first')} { nodes { id } } }`;
  const { data } = await graphqlThrice(store, { query });
  const ids = idsOf(data.pets);
  expect(idsOf(data.petsConnection.nodes)).toEqual(ids);
  return ids;
}

const down = ['7', '6', '5', '4', '3', '2', '1'];

test.each([
  ['', '', down.toReversed()],
  ['sort=id', 'sort: id', down.toReversed()],
  ['sort=id_desc', 'sort: id_desc', down],
  ['sort=id_desc&limit=2', 'sort: id_desc, limit: 2', ['7', '6']],
  ['sort=id_desc&after=3', 'sort: id_desc, after: "3"', ['2', '1']],
  ['sort=id_desc&after=1', 'sort: id_desc, after: "1"', []],
  [
    'sort=id_desc&after=9223372036854775807',
    'sort: id_desc, after: "9223372036854775807"',
    down,
  ],
  [
    'sort=id_desc&after=-9223372036854775808',
    'sort: id_desc, after: "-9223372036854775808"',
    [],
  ],
  ['sort=id_desc&status=sold', 'sort: id_desc, status: sold', ['5', '2']],
  [
    'sort=id_desc&status=sold&after=5',
    'sort: id_desc, status: sold, after: "5"',
    ['2'],
  ],
  ['sort=id_desc&status=pending', 'sort: id_desc, status: pending', []],
])('%s', async (query, parameters, ids) => {
  expect(await overRest(query)).toEqual(ids);
  expect(await overGraphQL(parameters)).toEqual(ids);
});

test('null is the usual order', async () =>
  expect(await overGraphQL('sort: null')).toEqual(down.toReversed()));

test('Link leads a walk down, in the same order and with the same filter', async () => {
  const walked: string[] = [];
  let path: string | undefined =
    '/v1/pets?sort=id_desc&status=available&limit=2';
  while (path) {
    const { json, headers }: Awaited<ReturnType<typeof rest>> = await rest(
      store,
      path,
    );
    walked.push(...idsOf(json as Array<{ id: number }>));
    path = /^<[^/]+\/\/[^/]+([^>]+)>; rel="next"/.exec(`${headers.link}`)?.[1];
  }
  expect(walked).toEqual(['7', '6', '4', '3', '1']);
});

test('a connection is walked down by its cursors', async () => {
  const pageAfter = async (after: string | null) => {
    const query = `query ($after: String) { petsConnection(first: 4, after: $after, sort: id_desc) {
      edges { cursor } pageInfo { hasNextPage endCursor } totalCount } }`;
    const { data } = await graphqlThrice(store, {
      query,
      variables: { after },
    });
    return data.petsConnection;
  };
  const edges = (ids: string[]) => ids.map((cursor) => ({ cursor }));
  const [first, second] = [await pageAfter(null), await pageAfter('4')];
  expect(first).toEqual({
    edges: edges(['7', '6', '5', '4']),
    pageInfo: { hasNextPage: true, endCursor: '4' },
    totalCount: 7,
  });
  expect(second).toEqual({
    edges: edges(['3', '2', '1']),
    pageInfo: { hasNextPage: false, endCursor: '1' },
    totalCount: 7,
  });
});

test('lists of both orders that are read together keep their own', async () => {
  const orders = ['id', 'id_desc', 'id', 'id_desc'];
  const filters = ['', '', '&status=sold', '&status=sold'];
  const lists = orders.map((sort, at) => `sort=${sort}&limit=3${filters[at]}`);
  const read = await Promise.all([...lists, ...lists].map(overRest));
  const expected = [
    ['1', '2', '3'],
    ['7', '6', '5'],
    ['2', '5'],
    ['5', '2'],
  ];
  expect(read).toEqual([...expected, ...expected]);
});

test('another order is refused by its name', async () => {
  const message = 'sort must be one of id, id_desc.';
  expect(await rest(store, '/v1/pets?sort=name')).toMatchObject({
    status: 400,
    json: { code: 'BAD_USER_INPUT', message, status: 400 },
  });
});

test('a live list grows at its end: it has no other order', async () => {
  const headers = { accept: 'text/event-stream' };
  const message = 'sort must be id for a live list: it grows at its end.';
  expect(await rest(store, '/v1/pets?sort=id_desc', { headers })).toMatchObject(
    { status: 400, json: { message } },
  );
  const { json } = await rest(store, '/v1/pets?before=6', { headers });
  expect(json.message).toBe(
    'before is not for a live list: it grows at its end.',
  );
  const stream = await openStream(store, {
    method: 'GET',
    path: '/v1/pets?sort=id&after=6',
  });
  const [seven] = await stream.until(1);
  expect(seven).toMatchObject({ id: '7' });
  stream.close();
});
