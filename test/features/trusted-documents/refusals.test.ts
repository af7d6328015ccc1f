import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentedErrors } from '../../parity/documented-errors.ts';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { onNode, startNode, storeForAll } from '../../support/store.ts';

/** The statuses and bodies of what is not registered, by `Accept`. */

const store = storeForAll();
const json = 'application/json';
const response = 'application/graphql-response+json';

async function manifest(): Promise<string> {
  const path = join(await newFolder(), 'manifest.json');
  writeFileSync(path, '{}');
  return path;
}

test.each([
  [{}, json, 400],
  [{}, response, 422],
  [{ GRAPHQL_APQ: 'true' }, json, 400],
  [{ GRAPHQL_APQ: 'true' }, response, 422],
])(
  'without a manifest a documentId is refused (%j, Accept: %s)',
  async (env, accept, status) => {
    const documentId = `sha256:${'a'.repeat(64)}`;
    const code = 'PERSISTED_QUERY_NOT_SUPPORTED';
    const errors = [{ extensions: { code, status: 400 } }];
    await onNode(store, env, async (node) => {
      const path = `/graphql?${new URLSearchParams({ documentId, variables: '{}' })}`;
      const authorization = `Bearer ${node.key}`;
      const headers = { accept, authorization };
      const { status: byGet } = await send(node.origin, { path, headers });
      expect(byGet).toBe(status);
      expect(
        await graphqlText(node, { documentId }, node.key, { accept }),
      ).toMatchObject({ status, errors });
    });
  },
);

test('a document that is not registered is refused, as docs/errors.md shows', async () => {
  const node = await startNode(store, { TRUSTED_DOCUMENTS: await manifest() });
  for (const accept of [json, response]) {
    const { status, errors } = await graphqlText(
      node,
      { query: '{ pets { id } }' },
      node.key,
      { accept },
    );
    expect(status).toBe(403);
    expect({ errors }).toEqual(documentedErrors.get('OPERATION_NOT_TRUSTED'));
  }
  await node.close();
});
