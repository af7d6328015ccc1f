import { hostname } from 'node:os';
import { ApiKeyService, actorOf } from '#engine/access/keys/api-key.service.js';
import type { Database } from '#engine/database/database.js';
import { databaseForAll } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import {
  eventually,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { linesOf } from '../../support/process-log.ts';

const database = databaseForAll();
let server: ServerProcess;
let node: Database;
let keys: ApiKeyService;
let key: string;
let keyId: number;
beforeAll(async () => {
  server = await startServer({
    ...database.env,
    TRUST_PROXY: '127.0.0.1',
    AUTH_FAILURES_PER_MINUTE: '3',
  });
  ({ database: node } = await openNode(database));
  keys = new ApiKeyService(node, actorOf('test'));
  ({ key, id: keyId } = await keys.issue({ name: 'lines' }));
});
afterAll(() => node.close());

let count = 0;

/** Sends a request. @returns its line in the log */
async function lineOf(
  path: string,
  headers: Record<string, string> = {},
  body?: object,
) {
  const reqId = `request-${++count}`;
  const json = body && { 'content-type': 'application/json' };
  await send(server.origin, {
    method: body ? 'POST' : 'GET',
    path,
    headers: {
      authorization: `Bearer ${key}`,
      'x-request-id': reqId,
      ...json,
      ...headers,
    },
    body: body && JSON.stringify(body),
  });
  const found = () =>
    linesOf(server.output.stdout, 'answered').filter(
      (line) => line.reqId === reqId,
    );
  await eventually(async () => found().length === 1);
  return found()[0] as Record<string, unknown>;
}

const number = expect.any(Number);
/** The members in the line of every request with the key. */
const always = () => ({
  level: 30,
  time: number,
  pid: server.child.pid,
  host: hostname(),
  reqId: expect.any(String),
  address: '127.0.0.1',
  ms: number,
  bytes: number,
  key: keyId,
  keyHint: key.slice(0, 8),
  queueMs: number,
  batch: number,
  msg: 'answered',
});

describe('the line of a request has its key, operation and result', () => {
  test('for a creation and a list by REST', async () => {
    const created = await lineOf(
      '/v1/pets',
      { 'user-agent': 'shop/2.1' },
      { name: 'Rex', categoryId: 5 },
    );
    const api = { api: 'rest', req: { method: 'POST', path: '/v1/pets' } };
    const created201 = {
      operation: 'createPet',
      status: 201,
      batch: 1,
      userAgent: 'shop/2.1',
    };
    expect(created).toEqual({ ...always(), ...api, ...created201 });
    const { text } = await send(server.origin, {
      path: '/v1/pets',
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await lineOf('/v1/pets')).toEqual({
      ...always(),
      api: 'rest',
      req: { method: 'GET', path: '/v1/pets' },
      operation: 'listPets',
      status: 200,
      bytes: text.length,
    });
  });

  test('for a GraphQL operation: its name, and its root fields by their names in the schema, each once', async () => {
    const query = `query Shop { a: pets(limit: 1) { id } b: pets(limit: 2) { id } ...More }
      fragment More on Query { ... on Query { petsConnection(first: 1) { edges { cursor } } } }`;
    // Interpreted, then compiled.
    for (const _ of [1, 2, 3]) {
      expect(await lineOf('/graphql', {}, { query })).toEqual({
        ...always(),
        req: { method: 'POST', path: '/graphql' },
        api: 'graphql',
        operation: 'Shop',
        fields: ['pets', 'petsConnection'],
        status: 200,
      });
    }
  });

  test('for a creation that is sent again by either API: `replayed`', async () => {
    const rex = { name: 'Rex', categoryId: 5 };
    const query =
      'mutation { createPet(input: { name: "Rex", categoryId: 5 }) { id } }';
    const once = { 'idempotency-key': 'a-name-for-it' };
    expect(await lineOf('/v1/pets', once, rex)).not.toHaveProperty('replayed');
    expect(await lineOf('/v1/pets', once, rex)).toMatchObject({
      status: 201,
      replayed: true,
    });
    expect(await lineOf('/graphql', once, { query })).toMatchObject({
      status: 200,
      replayed: true,
    });
    expect(await lineOf('/graphql', {}, { query })).not.toHaveProperty(
      'replayed',
    );
  });

  test('for a GraphQL operation that failed in part or as a whole, or is invalid: the code, and the status of its media type', async () => {
    const accept = { accept: 'application/graphql-response+json' };
    const query =
      'mutation Create($input: NewPet!) { createPet(input: $input) { id } }';
    const wrong = {
      query,
      variables: { input: { name: 'Rex', categoryId: 'five' } },
    };
    const unknown = { query: '{ nothing }', operationName: 'Wrong' };
    const [input, invalid] = ['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED'];
    for (const [body, headers, line] of [
      [
        wrong,
        {},
        {
          status: 200,
          code: input,
          operation: 'Create',
          fields: ['createPet'],
        },
      ],
      [
        { query: '{ pets(limit: 0) { id } }' },
        accept,
        { status: 294, code: input, fields: ['pets'] },
      ],
      [unknown, {}, { status: 200, code: invalid, operation: 'Wrong' }],
      [unknown, accept, { status: 422, code: invalid, operation: 'Wrong' }],
      [{ query: 5 }, {}, { status: 400, code: input }],
      [{ query: 5 }, accept, { status: 422, code: input }],
    ] as Array<[object, Record<string, string>, object]>) {
      expect(await lineOf('/graphql', headers, body)).toMatchObject(line);
    }
  });

  test('for any other request: api `other`, the code of a refusal, and the path without query and secrets, up to 256 characters', async () => {
    expect(await lineOf('/livez?a')).toMatchObject({
      api: 'other',
      status: 200,
      req: { path: '/livez' },
    });
    const secret = `ask_${'y'.repeat(49)}`;
    const split = `/v1/${'x'.repeat(220)}/`;
    for (const [path, logged] of [
      [`/%zz?${key}`, '/%zz'],
      [`/v1/${'x'.repeat(5000)}`, `/v1/${'x'.repeat(252)}`],
      [`/v1/${secret.replace('ask_', '%61sk%5f')}?${secret}`, '/v1/ask_...'],
      [`${split}${secret}`, `${split}ask_...`],
    ] as const) {
      const missing = {
        api: 'other',
        status: 404,
        code: 'NOT_FOUND',
        key: keyId,
      };
      expect(await lineOf(path)).toMatchObject({
        ...missing,
        req: { method: 'GET', path: logged },
      });
    }
  });
});

test('texts of a client are bounded, and have no control characters', async () => {
  const { userAgent } = await lineOf('/livez', {
    'user-agent': `\u009b31m\t${'x'.repeat(200)}`,
  });
  expect(userAgent).toBe(`?31m?${'x'.repeat(123)}`);
  const named = async (name: string) =>
    (await lineOf('/graphql', {}, { query: `query ${name} { __typename }` }))
      .operation;
  expect(await named('a'.repeat(64))).toBe('a'.repeat(64));
  expect(await named('a'.repeat(65))).toBeUndefined();
});

test('behind a trusted proxy the address is that of the client, and never another text', async () => {
  for (const [forwarded, address] of [
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['nobody', undefined],
    // The zone of an address may be any word, even a key.
    ['fe80::1%a-key-of-somebody', 'fe80::1'],
  ] as const) {
    expect(
      (await lineOf('/livez', { 'x-forwarded-for': forwarded })).address,
    ).toBe(address);
  }
});

test('a refused key is logged by its hint if it has the form of a key, and otherwise not at all', async () => {
  const gone = await keys.issue({ name: 'gone' });
  await keys.revoke(gone.id);
  const line = await lineOf('/v1/pets', {
    authorization: `Bearer ${gone.key}`,
  });
  expect(line).toMatchObject({
    status: 401,
    code: 'UNAUTHENTICATED',
    keyHint: gone.key.slice(0, 8),
  });
  expect(line.key).toBeUndefined();
  const other = await lineOf('/v1/pets', {
    authorization: 'Bearer a-password-of-somebody',
  });
  expect(other.status).toBe(401);
  expect([other.key, other.keyHint]).toEqual([undefined, undefined]);
});

test('after a rotation the hint shows which of the two secrets a client still sends', async () => {
  const issued = await keys.issue({ name: 'two' });
  const rotated = await keys.rotate(issued.id, 86_400_000);
  for (const { key: secret } of [issued, rotated]) {
    const line = await lineOf('/v1/pets', {
      authorization: `Bearer ${secret}`,
    });
    expect(line).toMatchObject({
      status: 200,
      key: issued.id,
      keyHint: secret.slice(0, 8),
    });
  }
});
