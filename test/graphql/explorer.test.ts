import { getIntrospectionQuery } from 'graphql';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { storeForAll } from '../support/store.ts';

/** The explorer as a response; what it does in a browser is in `test/browser/pages.test.ts`. */

const store = storeForAll();

const visit = (origin = store.origin, headers = {}) =>
  send(origin, { path: '/graphql', headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', ...headers } });
const noncesOf = (page: string) => [...page.matchAll(/nonce(?:=|-)["']?([\w-]+)/g)].map(([, nonce]) => nonce);

test('14.24: every response has a nonce of its own, which is that of all its scripts and styles', async () => {
  const seen = new Set<string | undefined>();
  for (let time = 0; time < 5; time += 1) {
    const { status, text } = await visit();
    expect(status).toBe(200);
    const nonces = noncesOf(text);
    // The policy names two, and there are two scripts and two styles.
    expect(nonces).toHaveLength(6);
    expect(new Set(nonces).size).toBe(1);
    expect(nonces[0]).toMatch(/^[\w-]{22,}$/);
    seen.add(nonces[0]);
  }
  expect(seen.size).toBe(5);
});

test('14.24: with EXPLORER=false there is none: a browser is answered as anybody is', async () => {
  await onNode(store, { EXPLORER: 'false' }, async (node) => {
    const message = 'An API key is required: Authorization: Bearer <API_KEY>.';
    const { status, headers, text } = await visit(node.origin);
    expect([status, JSON.parse(text)]).toEqual([
      401,
      { errors: [{ message, extensions: { code: 'UNAUTHENTICATED', status: 401 } }] },
    ]);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['www-authenticate']).toBe('Bearer');

    const withKey = await visit(node.origin, { authorization: `Bearer ${node.key}` });
    expect([withKey.status, Object.keys(JSON.parse(withKey.text))]).toEqual([400, ['errors']]);
    expect(await graphqlText(node, { query: '{ __typename }' })).toMatchObject({ data: { __typename: 'Query' } });
  });
});

test('it is apart from introspection, which needs a key', async () => {
  await onNode(store, { GRAPHQL_INTROSPECTION: 'false' }, async (node) => {
    expect((await visit(node.origin)).headers['content-type']).toBe('text/html; charset=utf-8');
  });
  await onNode(store, { EXPLORER: 'false' }, async (node) => {
    expect((await graphqlText(node, { query: getIntrospectionQuery() })).data).toHaveProperty('__schema');
  });
});

test('14.27: the page offers a header that a user fills in, shares none, and asks for the schema once', async () => {
  const { text } = await visit();
  const [, config = ''] = /var embeddedSandboxConfig = (\{.+\});$/m.exec(text) ?? [];
  expect(JSON.parse(config)).toEqual({
    target: '#embeddableSandbox',
    initialState: {
      document: expect.stringMatching(/^query Pets \{/),
      headers: { Authorization: 'Bearer <API_KEY>' },
      pollForSchemaUpdates: false,
    },
    hideCookieToggle: false,
    endpointIsEditable: false,
    runtime: expect.stringMatching(/^@apollo\/server@5\./),
    runTelemetry: false,
    allowDynamicStyles: false,
  });
});

test('14.27: its placeholder is no key, but locks nobody out who has one', async () => {
  await onNode(store, { AUTH_FAILURES_PER_MINUTE: '5' }, async (node) => {
    for (let time = 0; time < 20; time += 1) {
      const { status, errors } = await graphqlText(node, { query: getIntrospectionQuery() }, '<API_KEY>');
      expect({ status, errors }).toEqual({
        status: 401,
        errors: [{ message: 'The API key is not valid.', extensions: { code: 'UNAUTHENTICATED', status: 401 } }],
      });
    }
    const { key } = await store.keys.issue({ name: 'fresh' });
    expect((await graphqlText(node, { query: '{ __typename }' }, key)).status).toBe(200);
  });
});
