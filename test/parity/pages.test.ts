// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference, plugins

import { sql, stock } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/**
 * The pages of connections (GraphQL Cursor Connections Specification), and the
 * number of items on all pages.
 */

// On a busy machine a hundred thousand rows take longer than the usual limit of
// a statement.
const store = storeForAll(
  { DATABASE_STATEMENT_TIMEOUT_MS: '100000' },
  async () => {
    await stock(store.database, 5);
    await sql(store.database, `update pet set status = 'sold' where id <= 2`);
  },
);

const alone = nodeForAll(store, {}, { parts: [] });

async function overRest(query: string, prefer = 'count=exact') {
  const { status, headers } = await rest(store, `/v1/pets?${query}`, {
    headers: { prefer },
  });
  return [status, headers['x-total-count'], headers['preference-applied']];
}

async function overGraphQL(parameters: string) {
  const query = `{ petsConnection(${parameters}) { totalCount isTotalCountExact } }`;
  return (await graphqlThrice(store, { query })).data.petsConnection;
}

describe('a page of a connection', () => {
  const fields =
    'edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
  const connection = async (parameters: string) =>
    JSON.parse(
      (
        await graphqlThrice(store, {
          query: `{ petsConnection(${parameters}) { ${fields} } }`,
        })
      ).text,
    );

  test.each([
    ['first: 0', [], true],
    ['first: 0, after: "5"', [], false],
    ['first: 1, after: "1"', ['2'], true],
    ['first: 3, after: "2"', ['3', '4', '5'], false],
    ['first: 1, after: "9223372036854775807"', [], false],
    ['first: 1, sort: id_desc, after: "-9223372036854775808"', [], false],
    [
      'first: null, after: null, status: null',
      ['1', '2', '3', '4', '5'],
      false,
    ],
  ])('by %s', async (parameters, ids, hasNextPage) => {
    const [startCursor, endCursor] = [ids.at(0) ?? null, ids.at(-1) ?? null];
    const pageInfo = {
      hasNextPage,
      hasPreviousPage: /after: "/.test(parameters),
      startCursor,
      endCursor,
    };
    const nodes = ids.map((id) => ({ id }));
    const edges = nodes.map((node) => ({ cursor: node.id, node }));
    expect(await connection(parameters)).toEqual({
      data: { petsConnection: { edges, nodes, pageInfo } },
    });
  });

  test('by a variable that is null has the usual size, and so has a list', async () => {
    const nodes = ['1', '2', '3', '4', '5'].map((id) => ({ id }));
    const query =
      'query ($n: Int) { petsConnection(first: $n) { nodes { id } } pets(limit: $n) { id } }';
    for (const node of [store, alone]) {
      for (const variables of [{ n: null }, {}]) {
        const { data } = await graphqlThrice(node, { query, variables });
        expect(data).toEqual({ petsConnection: { nodes }, pets: nodes });
      }
      const literal = {
        query:
          '{ petsConnection(first: null) { nodes { id } } pets(limit: null) { id } }',
      };
      expect((await graphqlThrice(node, literal)).data).toEqual({
        petsConnection: { nodes },
        pets: nodes,
      });
    }
  });

  test.each([
    ['first: -1', 'first must be an integer between 0 and 100.'],
    ['first: 101', 'first must be an integer between 0 and 100.'],
    ...['', 'rex', '9223372036854775808'].map((cursor) => [
      `after: "${cursor}"`,
      'after is not a cursor of this list: it must be an `endCursor`, or the `cursor` of an edge.',
    ]),
  ])('by %s is refused', async (parameters, message) => {
    const place = {
      path: ['petsConnection'],
      locations: [{ line: 1, column: 3 }],
    };
    const error = {
      message,
      ...place,
      extensions: { code: 'BAD_USER_INPUT', status: 400 },
    };
    expect(await connection(parameters as string)).toEqual({
      data: null,
      errors: [error],
    });
  });
});

describe('the total', () => {
  test.each([
    ['limit=1', 'first: 1', 5],
    ['limit=2&after=3', 'first: 2, after: "3"', 5],
    ['limit=1&status=sold', 'first: 1, status: sold', 2],
    ['status=pending', 'status: pending', 0],
  ])(
    'of %s counts all pages, through both APIs',
    async (query, parameters, total) => {
      expect(await overRest(query)).toEqual([200, `${total}`, 'count=exact']);
      expect(await overGraphQL(parameters)).toEqual({
        totalCount: total,
        isTotalCountExact: true,
      });
    },
  );

  test('is counted at each request, also when the page is unchanged; the response varies by Prefer', async () => {
    const first = await rest(store, '/v1/pets?limit=1', {
      headers: { prefer: 'count=exact' },
    });
    // RFC 7240, section 2.
    expect(first.headers.vary).toBe('Prefer, accept-encoding');
    await stock(store.database, 1);
    const headers = {
      prefer: 'count=exact',
      'if-none-match': `${first.headers.etag}`,
    };
    const second = await rest(store, '/v1/pets?limit=1', { headers });
    expect([second.status, second.headers['x-total-count']]).toEqual([
      304,
      '6',
    ]);
    await sql(store.database, 'delete from pet where id > 5');
  });

  test.each([
    'count="exact"',
    'return=minimal, Count = exact; x=1',
    'count=exact,count=none',
  ])('is sent for `Prefer: %s`', async (prefer) =>
    expect(await overRest('limit=1', prefer)).toEqual([
      200,
      '5',
      'count=exact',
    ]),
  );

  test.each([
    '',
    'count',
    'count=planned',
    'xcount=exact',
    'a="count=exact"',
    'a; count=exact',
  ])('is not counted for `Prefer: %s`', async (prefer) =>
    expect(await overRest('limit=1', prefer)).toEqual([
      200,
      undefined,
      undefined,
    ]),
  );

  test('is exact up to 100,000; beyond it is an estimate, and never less than 100,000', async () => {
    const insert = (from: number, to: number) =>
      sql(
        store.database,
        `insert into pet (id, name, category_id, status)
          select id, 'one of many', 1, 'available' from generate_series(${from}, ${to}) as id`,
      );
    try {
      await insert(1001, 100_995);
      expect(await overRest('limit=1')).toEqual([200, '100000', 'count=exact']);
      await insert(100_996, 100_996);
      const [status, total, applied] = await overRest('limit=1');
      expect([status, applied]).toEqual([200, 'count=estimated']);
      expect(Number(total)).toBeGreaterThan(100_000);
      expect(Number(total)).toBeLessThan(1_000_000);
      expect(await overRest('status=sold')).toEqual([200, '2', 'count=exact']);
      expect(await overGraphQL('first: 1')).toEqual({
        totalCount: Number(total),
        isTotalCountExact: false,
      });
    } finally {
      await sql(store.database, 'delete from pet where id > 1000');
    }
  });
});
