import { sql, statementsOf, stock } from '../support/database-access.ts';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The number of items on all pages, which a client asks for. */

const store = storeForAll({}, async () => {
  await stock(store.database, 5);
  await sql(store.database, `update pet set status = 'sold' where id <= 2`);
});

async function overRest(query: string, prefer = 'count=exact') {
  const { status, headers } = await rest(store, `/v1/pets?${query}`, { headers: { prefer } });
  return [status, headers['x-total-count'], headers['preference-applied']];
}

async function overGraphQL(parameters: string) {
  const query = `{ petsConnection(${parameters}) { totalCount isTotalCountExact } }`;
  return (await graphqlThrice(store, { query })).data.petsConnection;
}

describe('the total', () => {
  test.each([
    ['limit=1', 'first: 1', 5],
    ['limit=2&after=3', 'first: 2, after: "3"', 5],
    ['limit=1&status=sold', 'first: 1, status: sold', 2],
    ['status=pending', 'status: pending', 0],
  ])('of %s counts all pages, through both APIs', async (query, parameters, total) => {
    expect(await overRest(query)).toEqual([200, `${total}`, 'count=exact']);
    expect(await overGraphQL(parameters)).toEqual({ totalCount: total, isTotalCountExact: true });
  });

  test('is that of the moment of the request, although the page is unchanged', async () => {
    const first = await rest(store, '/v1/pets?limit=1', { headers: { prefer: 'count=exact' } });
    await stock(store.database, 1);
    const headers = { prefer: 'count=exact', 'if-none-match': `${first.headers.etag}` };
    const second = await rest(store, '/v1/pets?limit=1', { headers });
    expect([second.status, second.headers['x-total-count']]).toEqual([304, '6']);
    await sql(store.database, 'delete from pet where id > 5');
  });

  test('is kept by caches for requests that ask for it (RFC 7240, section 2)', async () => {
    const { headers } = await rest(store, '/v1/pets?limit=1', { headers: { prefer: 'count=exact' } });
    expect(headers.vary).toBe('Prefer, accept-encoding');
  });

  test.each(['count="exact"', 'return=minimal, Count = exact; x=1', 'count=exact,count=none'])(
    'is sent for `Prefer: %s`',
    async (prefer) => expect(await overRest('limit=1', prefer)).toEqual([200, '5', 'count=exact']),
  );

  test.each(['', 'count', 'count=planned', 'xcount=exact', 'a="count=exact"', 'a; count=exact'])(
    'is not counted for `Prefer: %s`',
    async (prefer) => expect(await overRest('limit=1', prefer)).toEqual([200, undefined, undefined]),
  );

  test('beyond 100,000 is an estimate, and not less than what was counted', async () => {
    await sql(
      store.database,
      `insert into pet (id, name, category_id, status)
        select id, 'one of many', 1, 'available' from generate_series(1001, 101100) as id`,
    );
    const [status, total, applied] = await overRest('limit=1');
    expect([status, applied]).toEqual([200, 'count=estimated']);
    expect(Number(total)).toBeGreaterThan(100_000);
    expect(Number(total)).toBeLessThan(1_000_000);
    expect(await overRest('status=sold')).toEqual([200, '2', 'count=exact']);
    expect(await overGraphQL('first: 1')).toEqual({ totalCount: Number(total), isTotalCountExact: false });
    await sql(store.database, 'delete from pet where id > 1000');
  });

  test('of a connection is read once for several fields, and only if one of them asks', async () => {
    const counts = async (work: () => Promise<unknown>) =>
      (await statementsOf(store.database, work)).filter((name) => name.startsWith('count')).length;
    const query = '{ petsConnection { nodes { id } edges { cursor } } }';
    expect(await counts(() => graphqlText(store, { query }))).toBe(0);
    expect(
      await counts(() => graphqlText(store, { query: '{ petsConnection { totalCount isTotalCountExact } }' })),
    ).toBe(1);
  });

  test('comes with the nodes of the page', async () => {
    const { data } = await graphqlText(store, {
      query: '{ petsConnection(first: 2, after: "1") { nodes { id name } } }',
    });
    expect(data.petsConnection.nodes.map(({ id }: { id: string }) => id)).toEqual(['2', '3']);
  });
});
