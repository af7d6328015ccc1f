import { readFileSync } from 'node:fs';
import { stockNames } from '../../../support/database-access.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { expect, test } from '../../../support/jest.ts';
import { storeForAll } from '../../../support/store.ts';

const metered = storeForAll({
  QUOTA_PER_MINUTE: '100000',
  // Beside other tests the answer takes seconds.
  DATABASE_STATEMENT_TIMEOUT_MS: '100000',
});

const name = '\u0001'.repeat(1000);
const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');

test('SECURITY.md says what the largest answer is, and what it costs', async () => {
  await stockNames(metered.database, Array(100).fill(name));
  const leaves = '__typename id name categoryId status';
  const page = `fragment F on PetConnection { edges { __typename cursor node { ${leaves} } } nodes { ${leaves} } }`;
  // Each alias of a root field brings two names for each animal, each other
  // one.
  const roots = (count: number) =>
    `{ pets(limit: 100) { ${leaves} } petsConnection(first: 100) { ...F }
    ${times(count - 2, (at) => `a${at}: petsConnection(first: 100) { ...F }`)} } ${page}`;
  const { text, headers } = await graphqlText(metered, { query: roots(52) });
  expect(headers.ratelimit).toMatch(/r=94748\b/);
  const figure = `${(text.length / 1e6).toFixed(1)} MB for 5,252 units`;
  expect(readFileSync('SECURITY.md', 'utf8')).toContain(figure);
  const codes = async (query: string) =>
    (await graphqlText(metered, { query })).errors?.map(
      ({ extensions }) => extensions.code,
    );
  expect(await codes(roots(53))).toEqual(['TOO_MANY_ALIASES']);
});
