import { databaseForAll } from '../../support/each.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { cli, eventually, startServer } from '../../support/process.ts';
import { exchange } from '../../support/raw.ts';
import type { Store } from '../../support/store.ts';

/** The real process, asked in every way with secrets in every place: none of them is in anything that it prints. */
const database = databaseForAll();

// Nothing marks it as a key, and it could be the name of an operation.
const bootstrapKey = 'bootstrap_secret_0123456789_0123456789';
const encoded = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&');
const encodedTwice = (text: string) => encoded(text).replaceAll('%', '%25');
/** A word that no line of a log has of itself, for every place of a request. */
const secret = (place: string) => `SECRET-${place}`;

function requests(key: string): HttpRequest[] {
  const wrong = `${key.slice(0, -1)}!`;
  const authorization = `Bearer ${key}`;
  const json = { authorization, 'content-type': 'application/json' };
  const post = (path: string, body: string, headers: Record<string, string> = json) => ({
    method: 'POST',
    path,
    headers,
    body,
  });
  const graphql = (query: string, variables: unknown = {}) => post('/graphql', JSON.stringify({ query, variables }));
  return [
    { path: '/v1/pets', headers: { authorization } },
    { path: '/v1/pets', headers: { authorization: `Bearer ${wrong}` } },
    { path: '/v1/pets', headers: { authorization: `Basic ${secret('basic')}` } },
    {
      path: '/v1/pets',
      headers: {
        authorization,
        'x-request-id': key,
        'x-api-key': key,
        cookie: `key=${secret('cookie')}`,
      },
    },
    {
      path: '/v1/pets',
      headers: {
        authorization,
        referer: `http://a/?${key}`,
        'user-agent': `shop/1 (${key})`,
        'x-forwarded-for': secret('address'),
      },
    },
    { path: '/v1/pets', headers: { authorization, 'user-agent': encoded(key), 'x-forwarded-for': key } },
    { path: '/v1/pets', headers: { authorization, 'user-agent': `${'x'.repeat(110)} ${key}` } },
    { path: '/v1/pets', headers: { authorization, 'x-request-id': `shop-${key}` } },
    { path: `/v1/${key}`, headers: { authorization } },
    { path: `/v1/${encoded(key)}/pets`, headers: { authorization } },
    { path: `/v1/${encodedTwice(key)}/pets`, headers: { authorization } },
    { path: `/v1/${'x'.repeat(240)}${encoded(key)}`, headers: { authorization } },
    graphql(`query ${key} { pets { id } }`),
    graphql(`query Shop_${key} { pets { id } }`),
    post('/graphql', JSON.stringify({ query: '{', operationName: key })),
    post('/graphql', JSON.stringify({ query: '{', operationName: secret('operation') })),
    { path: `/v1/pets?api_key=${key}&status=${secret('query')}`, headers: { authorization } },
    { path: `/v1/pets?limit=${secret('limit')}`, headers: { authorization } },
    { path: `/v1/pets?access_token=${key}` },
    {
      path: `/graphql?query={${secret('field').replace('-', '_')}}&variables={"key":"${key}"}`.replaceAll('"', '%22'),
      headers: { authorization, 'apollo-require-preflight': '1' },
    },
    { path: '/graphql', headers: { accept: 'text/html', cookie: secret('page') } },
    post('/v1/pets', JSON.stringify({ name: secret('name'), categoryId: 1, key })),
    post('/v1/pets', JSON.stringify({ name: secret('refused'), categoryId: key })),
    post('/v1/pets', `{"${secret('broken')}": ${key}`),
    post('/v1/pets', `{"__proto__": "${secret('poison')}"}`),
    post('/v1/pets', secret('text'), { authorization, 'content-type': 'text/plain' }),
    post('/v1/pets', secret('too-large').repeat(100_000)),
    post('/v1/pets', JSON.stringify({ name: secret('name'), categoryId: 1 }), {
      'content-type': 'application/json',
      authorization: `Bearer ${wrong}`,
    }),
    graphql('query ($after: ID) { pets(after: $after) { id } }', { after: secret('variable') }),
    graphql('query ($after: ID) { pets(after: $after) { id } }', { after: key }),
    graphql('query ($status: PetStatus) { pets(status: $status) { id } }', { status: secret('coerced') }),
    graphql(`{ pets(after: "${secret('literal')}") { id } }`),
    graphql(`{ pets { ${secret('unknown').replace('-', '_')} } }`),
    graphql(`mutation ($input: NewPet!) { createPet(input: $input) { id } }`, {
      input: { name: secret('input'), categoryId: '1' },
    }),
    graphql(`mutation ($input: NewPet!) { createPet(input: $input) { id } }`, {
      input: { name: `${secret('null')}\u0000`, categoryId: key },
    }),
    graphql(`{ "${secret('syntax')}"`),
    post('/graphql', `{"query": ${secret('json')}`),
    post('/graphql', JSON.stringify({ documentId: key, extensions: { a: secret('extension') } })),
    { method: 'PUT', path: '/v1/pets', headers: json, body: secret('put') },
    { path: '/v1/store/orders', headers: { authorization, 'x-secret': secret('orders') } },
  ];
}

describe.each(['info', 'trace'])('at the level %s', (level) => {
  test('no key, no header, no query, no body and no variable is printed; every request is', async () => {
    const env = {
      ...database.env,
      BOOTSTRAP_API_KEY: bootstrapKey,
      LOG_LEVEL: level,
      QUOTA_PER_MINUTE: '100000',
      TRUST_PROXY: '1',
    };
    const server = await startServer(env);
    const issued = await cli(['keys', 'issue', '--name', 'logged', '--json'], database.env);
    const { key } = JSON.parse(issued.stdout);

    let answered = 0;
    for (const used of [key, bootstrapKey]) {
      for (const request of requests(used)) {
        // The server may hang up on what it refuses before it has read it all.
        await send(server.origin, request).then(
          () => {
            answered += 1;
          },
          () => undefined,
        );
      }
      await exchange(
        server as unknown as Store,
        `GET /v1/pets HTTP/1.1\r\nAuthorization : Bearer ${used}\r\n${secret('raw')}\r\n\r\n`,
      );
      await exchange(
        server as unknown as Store,
        `GET /%?${used} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: ${secret('raw')}\r\n\r\n`,
      );
    }
    const lines = () => server.output.stdout.split('\n').filter((line) => line.includes('"msg":"answered"'));
    await eventually(async () => lines().length >= answered);
    const { code, stdout, stderr } = await server.stop();

    expect(code).toBe(0);
    expect(answered).toBeGreaterThan(50);
    const printed = stdout + stderr;
    expect(printed).not.toContain('SECRET');
    expect(printed).not.toContain(bootstrapKey);
    expect(printed).not.toMatch(/ask_\w{9,}/);
    // Nor a part of one long enough to be of use, nor one that can be decoded.
    for (const secret of [key.slice(4), bootstrapKey]) {
      for (let at = 0; at + 12 <= secret.length; at += 1) {
        const part = secret.slice(at, at + 12);
        for (const form of [part, encoded(part), encodedTwice(part)]) expect(printed).not.toContain(form);
      }
    }
    expect(printed).toContain('"userAgent":"shop/1 (ask_...)"');
    expect(printed).toContain('"userAgent":"shop/1 ([key])"');
    expect(printed).not.toMatch(/authorization|Bearer/i);
    expect(printed).not.toMatch(/"level":[56]0/);
    for (const line of stdout.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  });
});
