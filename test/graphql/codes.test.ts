import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { httpStatusOf, restCodes } from '../../src/errors.ts';
import { newFolder } from '../support/database.ts';
import { documentedErrors, documentedFieldError } from '../support/errors-page.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { storeForAll } from '../support/store.ts';

/** The vocabulary of GraphQL, each word as docs/errors.md shows it. */

const store = storeForAll();
const times = (count: number, text: string) => Array.from({ length: count }, () => text).join(' ');
const hashAlone = { extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } };

interface Way {
  body: { query: string } | typeof hashAlone;
  env?: () => Promise<Record<string, string>> | Record<string, string>;
  accept?: string;
}

const ways: Record<string, Way> = {
  GRAPHQL_PARSE_FAILED: { body: { query: '{ pets' } },
  GRAPHQL_VALIDATION_FAILED: { body: { query: '{ pets(status: Sold) { id } }' } },
  NOT_ACCEPTABLE: { body: { query: '{ pets { id } }' }, accept: 'text/plain' },
  TOO_MANY_TOKENS: { body: { query: `{ ${times(1001, 'name')} }` } },
  QUERY_TOO_DEEP: {
    body: { query: `{ __schema { types { fields { type ${times(13, '{ ofType')} { name } ${times(13, '}')} } } } }` },
  },
  TOO_MANY_ALIASES: {
    body: { query: `{ pets { ${Array.from({ length: 51 }, (_, n) => `a${n}: id`).join(' ')} } }` },
  },
  TOO_MANY_ROOT_FIELDS: { body: { query: `{ ${times(51, '__typename')} }` } },
  TOO_MANY_DIRECTIVES: { body: { query: `{ pets { ${times(51, 'id @include(if: true)')} } }` } },
  QUERY_TOO_COSTLY: { body: { query: '{ pets(limit: 100) { id } }' }, env: () => ({ GRAPHQL_MAX_COST: '100' }) },
  OPERATION_NOT_TRUSTED: {
    body: { query: '{ pets { id } }' },
    env: async () => {
      const manifest = join(await newFolder(), 'manifest.json');
      writeFileSync(manifest, '{}');
      return { TRUSTED_DOCUMENTS: manifest };
    },
  },
  PERSISTED_QUERY_NOT_FOUND: { body: hashAlone, env: () => ({ GRAPHQL_APQ: 'true' }) },
  PERSISTED_QUERY_NOT_SUPPORTED: { body: hashAlone },
};

test('docs/errors.md has a chapter for every code, and for no other', () => {
  const codes = new Set([...restCodes, ...Object.keys(httpStatusOf), ...Object.keys(ways)]);
  expect([...documentedErrors.keys()].sort()).toEqual([...codes].sort());
});

async function answerTo({ body, accept = 'application/json' }: Way, { origin } = store as { origin: string }) {
  const headers = { authorization: `Bearer ${store.key}`, 'content-type': 'application/json', accept };
  const { text } = await send(origin, { method: 'POST', path: '/graphql', headers, body: JSON.stringify(body) });
  return JSON.parse(text);
}

test.each(Object.keys(ways))('GraphQL answers %s, as docs/errors.md shows it', async (code) => {
  const way = ways[code] as Way;
  const answer = way.env ? onNode(store, await way.env(), (node) => answerTo(way, node)) : answerTo(way);
  expect(await answer).toEqual(documentedErrors.get(code));
});

test('GraphQL answers a field that fails as docs/errors.md shows it', async () => {
  expect(await answerTo({ body: { query: '{ pets(limit: 0) { id } }' } })).toEqual(documentedFieldError);
});
