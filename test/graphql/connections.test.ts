import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Connections by the GraphQL Cursor Connections Specification. */

const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

const fields = 'edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
/** Asks three times: the second time an operation is compiled, and no answer may depend on that. */
async function connection(parameters: string) {
  const query = `{ petsConnection(${parameters}) { ${fields} } }`;
  const answers = [];
  for (let time = 1; time <= 3; time += 1) {
    const { status, data, errors } = await graphqlText(store, { query });
    answers.push({ status, data, errors });
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  return answers[0];
}
const edge = (id: string) => ({ cursor: id, node: { id } });

describe('a page of a connection', () => {
  test.each([
    ['first: 0', [], true],
    ['first: 0, after: "2"', [], true],
    ['first: 0, after: "3"', [], false],
    ['first: 1, after: "1"', ['2'], true],
    ['first: 3', ['1', '2', '3'], false],
  ])('by %s', async (parameters, ids, hasNextPage) => {
    const [startCursor, endCursor] = [ids.at(0) ?? null, ids.at(-1) ?? null];
    const pageInfo = { hasNextPage, hasPreviousPage: false, startCursor, endCursor };
    expect(await connection(parameters)).toEqual({
      status: 200,
      data: { petsConnection: { edges: ids.map(edge), pageInfo } },
    });
  });

  test.each([
    ['first: -1', 'first must be an integer between 0 and 100.'],
    ['first: 101', 'first must be an integer between 0 and 100.'],
    ...['', 'rex', '1.5', '007', '9223372036854775808'].map((cursor) => [
      `after: "${cursor}"`,
      'after is not a cursor of this list: it must be an `endCursor`, or the `cursor` of an edge.',
    ]),
  ])('by %s is refused', async (parameters, message) => {
    const answer = await connection(parameters as string);
    expect(answer).toEqual({
      status: 200,
      data: null,
      errors: [
        {
          message,
          path: ['petsConnection'],
          locations: [{ line: 1, column: 3 }],
          extensions: { code: 'BAD_USER_INPUT', status: 400 },
        },
      ],
    });
  });
});
