import { stock } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Connections by the GraphQL Cursor Connections Specification. */

const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

const fields = 'edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
const connection = async (parameters: string) =>
  JSON.parse((await graphqlThrice(store, { query: `{ petsConnection(${parameters}) { ${fields} } }` })).text);
const edge = (id: string) => ({ cursor: id, node: { id } });

describe('a page of a connection', () => {
  test.each([
    ['first: 0', [], true],
    ['first: 0, after: "3"', [], false],
    ['first: 1, after: "1"', ['2'], true],
    ['first: 3', ['1', '2', '3'], false],
  ])('by %s', async (parameters, ids, hasNextPage) => {
    const [startCursor, endCursor] = [ids.at(0) ?? null, ids.at(-1) ?? null];
    const pageInfo = { hasNextPage, hasPreviousPage: false, startCursor, endCursor };
    expect(await connection(parameters)).toEqual({ data: { petsConnection: { edges: ids.map(edge), pageInfo } } });
  });

  test.each([
    ['first: -1', 'first must be an integer between 0 and 100.'],
    ['first: 101', 'first must be an integer between 0 and 100.'],
    ...['', 'rex', '9223372036854775808'].map((cursor) => [
      `after: "${cursor}"`,
      'after is not a cursor of this list: it must be an `endCursor`, or the `cursor` of an edge.',
    ]),
  ])('by %s is refused', async (parameters, message) => {
    const path = ['petsConnection'];
    const extensions = { code: 'BAD_USER_INPUT', status: 400 };
    const error = { message, path, locations: [{ line: 1, column: 3 }], extensions };
    expect(await connection(parameters as string)).toEqual({ data: null, errors: [error] });
  });
});
