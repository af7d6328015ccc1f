import { databaseForAll } from '../../support/fixtures.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { cli, eventually, startServer } from '../../support/process.ts';
import { exchange } from '../../support/raw.ts';

/**
 * The real process gets every kind of request with secrets in every place. It
 * prints none of them.
 */
const database = databaseForAll();

// It has no prefix that marks a key, and is a valid name of an operation.
const bootstrapKey = 'bootstrap_secret_0123456789_0123456789';
const encoded = (text: string) =>
  Buffer.from(text).toString('hex').replace(/../g, '%$&');
const encodedTwice = (text: string) => encoded(text).replaceAll('%', '%25');
/** A word for a place of a request. No log line contains it otherwise. */
const secret = (place: string) => `SECRET-${place}`;

/** A token whose signature has such a word. */
const token = (place: string) =>
  `eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.${secret(place)}`;

function requests(key: string): HttpRequest[] {
  const wrong = `${key.slice(0, -1)}!`;
  const authorization = `Bearer ${key}`;
  const get = (path: string, headers = {}) => ({
    path,
    headers: { authorization, ...headers },
  });
  const list = (headers: object) => get('/v1/pets', headers);
  const post = (path: string, body: string, headers = {}) => ({
    ...get(path, { 'content-type': 'application/json', ...headers }),
    method: 'POST',
    body,
  });
  const create = (members: object) => post('/v1/pets', JSON.stringify(members));
  const graphql = (query: string, variables: unknown = {}, more = {}) =>
    post('/graphql', JSON.stringify({ query, variables, ...more }));
  const page = 'query ($after: ID) { pets(after: $after) { id } }';
  const add = 'mutation ($input: NewPet!) { createPet(input: $input) { id } }';
  const field = secret('field').replace('-', '_');
  return [
    list({ authorization: `Bearer ${wrong}` }),
    list({ authorization: `Basic ${secret('basic')}` }),
    list({
      'x-request-id': key,
      'x-api-key': key,
      cookie: `key=${secret('cookie')}`,
    }),
    list({
      referer: `http://a/?${key}`,
      'user-agent': `shop/1 (${key})`,
      'x-forwarded-for': secret('address'),
    }),
    list({ 'user-agent': encoded(key), 'x-forwarded-for': key }),
    list({ 'user-agent': `${'x'.repeat(110)} ${key}` }),
    list({
      'user-agent': token('agent'),
      'x-request-id': token('id').slice(0, 60),
    }),
    get(`/v1/${token('path')}`),
    get(`/v1/${encoded(token('encoded'))}`),
    list({ 'x-request-id': `shop-${key}` }),
    get(`/v1/${key}`),
    get(`/v1/${encoded(key)}/pets`),
    get(`/v1/${encodedTwice(key)}/pets`),
    get(`/v1/${'x'.repeat(240)}${encoded(key)}`),
    get(`/v1/pets?api_key=${key}&status=${secret('query')}`),
    get('/v1/store/orders', { 'x-secret': secret('orders') }),
    get(`/graphql?query={${field}}&variables={%22key%22:%22${key}%22}`, {
      'apollo-require-preflight': '1',
    }),
    { path: `/v1/pets?access_token=${key}` },
    {
      path: '/graphql',
      headers: { accept: 'text/html', cookie: secret('page') },
    },
    { ...post('/v1/pets', secret('put')), method: 'PUT' },
    create({ name: secret('name'), categoryId: 1, key }),
    create({ name: secret('refused'), categoryId: key }),
    post('/v1/pets', `{"${secret('broken')}": ${key}`),
    post('/v1/pets', `{"__proto__": "${secret('poison')}"}`),
    post('/v1/pets', secret('text'), { 'content-type': 'text/plain' }),
    post('/v1/pets', secret('too-large').repeat(100_000)),
    post('/v1/pets', secret('unread'), { authorization: `Bearer ${wrong}` }),
    graphql(`query ${key} { pets { id } }`),
    graphql(`query Shop_${key} { pets { id } }`),
    graphql('{', {}, { operationName: key }),
    graphql('{', {}, { operationName: secret('operation') }),
    graphql(page, { after: secret('variable') }),
    graphql(page, { after: key }),
    graphql('query ($status: PetStatus) { pets(status: $status) { id } }', {
      status: secret('coerced'),
    }),
    graphql(`{ pets(after: "${secret('literal')}") { id } }`),
    graphql(`{ pets { ${field} } }`),
    graphql(add, { input: { name: secret('input'), categoryId: '1' } }),
    graphql(add, {
      input: { name: `${secret('null')}\u0000`, categoryId: key },
    }),
    graphql(`{ "${secret('syntax')}"`),
    post('/graphql', `{"query": ${secret('json')}`),
    post(
      '/graphql',
      JSON.stringify({
        documentId: key,
        extensions: { a: secret('extension') },
      }),
    ),
  ];
}

describe.each(['info', 'trace'])('at the level %s', (level) => {
  test('no key, header, query, body or variable is printed; every request is logged', async () => {
    const env = {
      ...database.env,
      BOOTSTRAP_API_KEY: bootstrapKey,
      LOG_LEVEL: level,
      TRUST_PROXY: '1',
    };
    const server = await startServer(env);
    const issued = await cli(
      ['keys', 'issue', '--name', 'logged', '--json'],
      database.env,
    );
    const { key } = JSON.parse(issued.stdout);

    let responseCount = 0;
    for (const used of [key, bootstrapKey]) {
      for (const request of requests(used)) {
        // The server may close the connection before it has read all of a
        // request that it refuses.
        const response = await send(server.origin, request).catch(
          () => undefined,
        );
        if (response) responseCount += 1;
      }
      const raw = `X: ${secret('raw')}\r\n\r\n`;
      await exchange(
        server,
        `GET /v1/pets HTTP/1.1\r\nAuthorization : Bearer ${used}\r\n${raw}`,
      );
      await exchange(
        server,
        `GET /%?${used} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${raw}`,
      );
    }
    const lines = () =>
      server.output.stdout
        .split('\n')
        .filter((line) => line.includes('"msg":"answered"'));
    await eventually(async () => lines().length >= responseCount);
    const { code, stdout, stderr } = await server.stop();

    expect(code).toBe(0);
    expect(responseCount).toBeGreaterThan(50);
    const printed = stdout + stderr;
    expect(printed).not.toContain('SECRET');
    expect(printed).not.toContain(bootstrapKey);
    expect(printed).not.toMatch(/ask_\w{9,}/);
    // Neither is a part of a key that is long enough to be of use, plain or
    // encoded.
    for (const secret of [key.slice(4), bootstrapKey]) {
      for (let at = 0; at + 12 <= secret.length; at += 1) {
        const part = secret.slice(at, at + 12);
        for (const form of [part, encoded(part), encodedTwice(part)])
          expect(printed).not.toContain(form);
      }
    }
    expect(printed).toContain('"userAgent":"shop/1 (ask_...)"');
    expect(printed).toContain('"userAgent":"shop/1 ([key])"');
    expect(printed).not.toMatch(/authorization|Bearer/i);
    expect(printed).not.toMatch(/"level":[56]0/);
    for (const line of stdout.trim().split('\n'))
      expect(() => JSON.parse(line)).not.toThrow();
  });
});
