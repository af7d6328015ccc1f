import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { getIntrospectionQuery } from 'graphql';
import type { Example } from '#engine/api/module.js';
import { modules } from '../../../../src/modules.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { send } from '../../../support/http.ts';
import { expect, test } from '../../../support/jest.ts';
import { onNode, storeForAll } from '../../../support/store.ts';

/**
 * The responses of the explorers; `explorers-in-browser.test.ts` tests them in a
 * browser.
 */

const store = storeForAll();

const visit = (origin = store.origin, headers = {}) =>
  send(origin, {
    path: '/graphql',
    headers: {
      accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
      ...headers,
    },
  });
const hashOf = (text: string) =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const file = (name: string) =>
  expect.stringMatching(new RegExp(`^graphiql/[0-9a-f]{16}/${name}$`));

const policyOf = ({ headers }: { headers: Record<string, unknown> }) =>
  `${headers['content-security-policy']}`.split(';');

test('Sandbox may load its script and frame from Apollo, and its page runs only its own script', async () => {
  const response = await visit();
  const [, start = ''] =
    /<script type="module">(.*?)<\/script>/s.exec(response.text) ?? [];
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(response.text) ?? [];
  expect(policyOf(response)).toEqual([
    "default-src 'none'",
    `script-src ${hashOf(start)} https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js`,
    `style-src ${hashOf(style)}`,
    'frame-src https://sandbox.embed.apollographql.com/',
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
});

test('GraphiQL loads only from this service, at addresses that a proxy may prefix', async () => {
  const response = await send(store.origin, { path: '/graphiql' });
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
  });
  expect(policyOf(response)).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
  const loaded = response.text.matchAll(
    /<(?:link|script|img)\b[^>]*(?:src|href)="([^"]+)"/g,
  );
  expect([...loaded].map(([, address]) => address)).toEqual([
    'favicon.ico',
    file('react.js'),
    file('react-dom.js'),
    file('graphiql.js'),
    file('builder.js'),
    'docs/static/graphiql.js',
    file('graphiql.css'),
    file('builder.css'),
    'docs/static/graphiql.css',
  ]);
});

test('the files of GraphiQL are cached for ever, compressed for clients that support it; other addresses need a key', async () => {
  const { text } = await send(store.origin, { path: '/graphiql' });
  const [, folder] = /src="graphiql\/(\w+)\/react\.js"/.exec(text) ?? [];
  const get = (path: string, headers = {}) =>
    send(store.origin, { path: `/graphiql/${path}`, headers });

  const { status, headers } = await get(`${folder}/graphiql.js`, {
    'accept-encoding': 'gzip, deflate, br',
  });
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'br',
    'content-type': 'text/javascript; charset=utf-8',
    vary: 'accept-encoding',
    'x-content-type-options': 'nosniff',
  });
  const cached = {
    'accept-encoding': 'br',
    'if-none-match': `${headers.etag}`,
  };
  expect((await get(`${folder}/graphiql.js`, cached)).status).toBe(304);
  expect(
    (await get(`${folder}/graphiql.js`)).headers['content-encoding'],
  ).toBeUndefined();

  for (const path of [
    '',
    'other.js',
    '..%2f..%2fsrc%2fmain.js',
    '../../src/main.js',
    '%2e%2e/%2e%2e/src/main.js',
  ]) {
    expect([path, (await get(`${folder}/${path}`)).status]).toEqual([
      path,
      401,
    ]);
  }
});

test('the folder of the files of GraphiQL is named by their content, because they are cached for ever', () => {
  const [folder = ''] = readdirSync('web/explorer/dist');
  const hash = createHash('sha256');
  for (const name of readdirSync(`web/explorer/dist/${folder}`).sort())
    hash
      .update(name)
      .update(readFileSync(`web/explorer/dist/${folder}/${name}`));
  expect(folder).toBe(hash.digest('hex').slice(0, 16));
});

test('with EXPLORER=false there are no explorers; introspection is independent of them', async () => {
  await onNode(store, { EXPLORER: 'false' }, async (node) => {
    const message = 'An API key is required: Authorization: Bearer <API_KEY>.';
    const { status, headers, text } = await visit(node.origin);
    expect([status, JSON.parse(text)]).toEqual([
      401,
      {
        errors: [
          { message, extensions: { code: 'UNAUTHENTICATED', status: 401 } },
        ],
      },
    ]);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['www-authenticate']).toBe('Bearer');

    expect(
      (
        await send(node.origin, {
          path: '/graphiql',
          headers: { accept: 'text/html' },
        })
      ).status,
    ).toBe(401);
    const graphiql = {
      path: '/graphiql',
      headers: { authorization: `Bearer ${node.key}` },
    };
    expect((await send(node.origin, graphiql)).status).toBe(404);

    const withKey = await visit(node.origin, {
      authorization: `Bearer ${node.key}`,
    });
    expect([withKey.status, Object.keys(JSON.parse(withKey.text))]).toEqual([
      400,
      ['errors'],
    ]);
    expect(
      (await graphqlText(node, { query: getIntrospectionQuery() })).data,
    ).toHaveProperty('__schema');
  });
  await onNode(store, { GRAPHQL_INTROSPECTION: 'false' }, async (node) => {
    expect((await visit(node.origin)).headers['content-type']).toBe(
      'text/html; charset=utf-8',
    );
  });
});

test('every example works on a new store, in the document of Sandbox and in its own document', async () => {
  const { text } = await send(store.origin, { path: '/graphiql' });
  const [, listed = ''] = /id="examples">(.+)<\/script>/.exec(text) ?? [];
  const examples: Example[] = JSON.parse(listed);
  const titles = modules
    .flatMap((module) => module.examples ?? [])
    .map(({ title }) => title);
  expect(examples.map(({ title }) => title)).toEqual(titles);
  for (const { title, document, variables } of examples.filter(
    ({ document }) => !document.startsWith('subscription'),
  )) {
    const response = await graphqlText(store, { query: document, variables });
    expect([title, response.status, response.errors]).toEqual([
      title,
      200,
      undefined,
    ]);
  }
  // Sandbox sends its whole document with the name of one operation.
  const [, options = ''] =
    /id="options">(.+)<\/script>/.exec((await visit()).text) ?? [];
  const { document: query, variables } = JSON.parse(options).initialState;
  const added = await graphqlText(store, {
    query,
    variables,
    operationName: 'AddPet',
  });
  expect(added.data).toMatchObject({
    createPet: { categoryId: '9007199254740993' },
  });
  // Sandbox subscribes by multipart HTTP.
  expect(query).toContain('subscription PetAdded');
});
