import type { RequestObserver } from '#engine/runtime/observers.js';
import { checkupsModule } from '../../modules/checkups/checkups.module.ts';
import { toysModule } from '../../modules/toys/toys.module.ts';
import { operations } from '../../support/contract.ts';
import { sql } from '../../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { onNode, storeForAll } from '../../support/store.ts';
import { callTool, post, rpc as request, type Target } from './mcp.ts';

/**
 * The Model Context Protocol at `/mcp`, message by message;
 * test/deep/features/assistants/clients.test.ts has the official client.
 */

const store = storeForAll({
  MCP: 'true',
  CORS_ORIGINS: 'https://shop.example',
});
beforeEach(() => store.empty());

const version = '2026-07-28';
const _meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A request of the earlier revisions. */
const rpc = (method: string, params?: object, target: Target = store) =>
  request(target, method, params);

/** A request of the revision without a handshake. */
const rpcNow = (
  method: string,
  params: { name?: string } & object = {},
  headers: Record<string, string> = {},
) =>
  post(
    store,
    { jsonrpc: '2.0', id: 'a', method, params: { _meta, ...params } },
    {
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(params.name !== undefined && { 'mcp-name': params.name }),
      ...headers,
    },
  );

const call = (name: string, args: object, target: Target = store) =>
  callTool(target, name, args);
/** With arguments as JSON text. */
const callRaw = async (tool: string, args: string) => {
  const params = `{"name":"${tool}","arguments":${args}}`;
  return (
    await post(
      store,
      `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`,
    )
  ).json.result;
};
const failure = (text: string) => ({
  content: [{ type: 'text', text }],
  isError: true,
});

const big = '9007199254740993';
const rex = { name: 'Rex', categoryId: big, status: 'sold' };

const capabilities = {
  tools: {},
  events: {},
  extensions: { 'io.modelcontextprotocol/events': {} },
};
const names = (count: number) =>
  Array.from({ length: count }, (_, at) => `"a${at}":1`).join();

describe('a session', () => {
  test('of an earlier revision begins with initialize, and has no session id', async () => {
    const clientInfo = { name: 'test', version: '1' };
    const begin = (protocolVersion: string) =>
      rpc('initialize', { protocolVersion, capabilities: {}, clientInfo });
    const { json, headers } = await begin('2025-06-18');
    const serverInfo = {
      name: 'animal-store',
      title: 'Animal Store',
      version: '1.0.0',
    };
    const instructions =
      'The catalogue of animals offered by a store. Every operation needs an API key.';
    const result = {
      protocolVersion: '2025-06-18',
      capabilities,
      serverInfo,
      instructions,
    };
    expect(json).toEqual({ jsonrpc: '2.0', id: 7, result });
    expect(headers).not.toHaveProperty('mcp-session-id');
    expect((await begin('1999-01-01')).json.result.protocolVersion).toBe(
      '2025-11-25',
    );
    const initialized = await post(store, {
      jsonrpc: '2.0',
      method: 'notifications/initialized',
    });
    expect([initialized.status, initialized.text]).toEqual([202, '']);
    expect((await rpc('ping')).json).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: {},
    });
  });

  test('of the revision without sessions needs no initialize: each request stands alone', async () => {
    const { json } = await rpcNow('server/discover');
    expect(json.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: [version],
      capabilities,
      ttlMs: 300_000,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'animal-store' } },
    });
    expect((await rpcNow('tools/list')).json.result).toMatchObject({
      resultType: 'complete',
      cacheScope: 'private',
    });
    const created = await rpcNow('tools/call', {
      name: 'create_pet',
      arguments: rex,
    } as object);
    expect(created.json.result).toMatchObject({
      resultType: 'complete',
      structuredContent: rex,
    });
  });

  test('refuses headers that contradict the body, and unknown versions', async () => {
    for (const headers of [
      { 'mcp-protocol-version': '2030-01-01' },
      { 'mcp-protocol-version': '' },
      { 'mcp-method': 'ping' },
      { 'mcp-name': 'create_pet' },
    ] as Array<Record<string, string>>) {
      const { status, json } = await rpcNow(
        'tools/call',
        { name: 'list_pets' },
        headers,
      );
      expect([status, json.id, json.error.code]).toEqual([400, 'a', -32020]);
    }
    const unknown = '2030-01-01';
    const key = 'io.modelcontextprotocol/protocolVersion';
    const { status, json } = await rpcNow(
      'tools/list',
      { _meta: { ..._meta, [key]: unknown } } as object,
      { 'mcp-protocol-version': unknown },
    );
    const data = { supported: [version], requested: unknown };
    expect([status, json.error]).toMatchObject([400, { code: -32022, data }]);
    const earlier = await post(
      store,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { 'mcp-protocol-version': unknown },
    );
    expect(earlier.status).toBe(400);
  });

  test('of the revision without sessions needs the version and the capabilities in each body', async () => {
    const keys = Object.keys(_meta);
    for (const [lacking = '', other = ''] of [keys, keys.toReversed()]) {
      for (const wrong of [undefined, 5, [], null]) {
        const params = {
          _meta: {
            [other]: _meta[other as keyof typeof _meta],
            [lacking]: wrong,
          },
        };
        const { status, json } = await rpcNow('tools/list', params);
        const message = expect.stringContaining(lacking);
        const error = { code: -32602, message };
        expect([status, json.error]).toMatchObject([400, error]);
      }
    }
  });

  test('accepts a name in Base64, and refuses a notification of an unknown version', async () => {
    const encoded = (text: string) =>
      `=?base64?${Buffer.from(text).toString('base64')}?=`;
    const named = (more: Record<string, string>) =>
      rpcNow('tools/call', { name: 'list_pets' }, more);
    expect(
      (await named({ 'mcp-name': encoded('list_pets') })).json.result,
    ).toBeDefined();
    for (const more of [
      { 'mcp-name': encoded('create_pet') },
      // Node.js would skip what is not Base64. A proxy may read it differently.
      { 'mcp-name': encoded('list_pets').replace('bG', '!b G') },
      { 'mcp-name': encoded(encoded('list_pets')) },
      { 'mcp-protocol-version': encoded(version) },
    ] as Array<Record<string, string>>) {
      expect((await named(more)).json.error?.code).toBe(-32020);
    }
    for (const [requested, expected] of Object.entries({
      [version]: 202,
      '2025-11-25': 202,
      '1900-01-01': 400,
    })) {
      const notification = {
        jsonrpc: '2.0',
        method: 'notifications/initialized',
      };
      const { status } = await post(store, notification, {
        'mcp-protocol-version': requested,
      });
      expect([requested, status]).toEqual([requested, expected]);
    }
  });

  test.each(['nothing', '__proto__'])('has no method %s', async (method) => {
    const error = { code: -32601 };
    expect(await rpc(method)).toMatchObject({ status: 200, json: { error } });
    expect(await rpcNow(method)).toMatchObject({
      status: 404,
      json: { error },
    });
  });

  test('has no streams', async () => {
    const method = 'subscriptions/listen';
    const { headers, json } = await rpcNow(method, {
      notifications: {},
    } as object);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(json.error.code).toBe(-32603);
    expect((await rpc(method)).json.error.code).toBe(-32601);
  });
});

describe('the tools', () => {
  test('are the operations of REST that are not deprecated, with int64 as text', async () => {
    const { tools } = (await rpc('tools/list')).json.result;
    const documented = operations.filter(
      ({ deprecated, responses }) =>
        !deprecated && /"2/.test(JSON.stringify(responses)),
    );
    const named = ({ operationId }: { operationId: string }) =>
      operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(
      documented.map(named),
    );
    const [list, create] = ['list_pets', 'create_pet'].map((name) =>
      tools.find((tool: { name: string }) => tool.name === name),
    );
    const id = {
      type: 'string',
      pattern: '^-?\\d+$',
      description: expect.any(String),
    };
    expect(list).toMatchObject({
      title: 'List animals',
      inputSchema: {
        type: 'object',
        properties: { limit: { type: 'integer', maximum: 100 }, after: id },
        required: [],
      },
      outputSchema: {
        properties: { items: { type: 'array' }, next: { type: 'string' } },
        required: ['items'],
      },
      annotations: {
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      },
    });
    expect(create).toMatchObject({
      inputSchema: {
        properties: { categoryId: id, idempotencyKey: {} },
        required: ['name', 'categoryId'],
      },
      outputSchema: {
        properties: {
          id,
          categoryId: id,
          status: { enum: ['available', 'pending', 'sold'] },
        },
      },
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: false,
      },
    });
    expect(list.description).toBe('List animals');
    const { id: own } = create.outputSchema.properties;
    expect(own.description).toBe(
      'Unique identifier, assigned by the service on creation. An integer as text.',
    );
    expect(JSON.stringify(tools)).not.toMatch(
      /\$ref|\$id|"int64"|examples|JSON\.parse|GraphQL|Link:|201/,
    );
  });

  test('create and list, exact to the last digit; a JSON number that may be rounded is refused, and an argument that is null is absent', async () => {
    const refused = await callRaw(
      'create_pet',
      `{"name":"x","categoryId":${big}}`,
    );
    expect(refused).toEqual(
      failure(
        'BAD_USER_INPUT: categoryId must be text, because most clients round a number beyond 2^53.',
      ),
    );
    expect(
      (await callRaw('list_pets', `{"limit":${big}}`)).content[0].text,
    ).toMatch(/limit must be an integer/);
    const created = await callRaw(
      'create_pet',
      `{"name":"x","categoryId":"${big}"}`,
    );
    const pet = {
      id: expect.stringMatching(/^\d+$/),
      name: 'x',
      categoryId: big,
      status: 'available',
    };
    expect(created).toEqual({
      content: [{ type: 'text', text: expect.any(String) }],
      structuredContent: pet,
    });
    expect(JSON.parse(created.content[0].text)).toEqual(
      created.structuredContent,
    );
    const list = await call('list_pets', {
      limit: 1,
      after: '0',
      status: null,
    });
    expect(list.structuredContent).toEqual({
      items: [created.structuredContent],
    });
  });

  test('create once per idempotencyKey, which REST shares', async () => {
    const create = (name: string) =>
      call('create_pet', { ...rex, name, idempotencyKey: 'one' });
    await create('Rex');
    expect((await create('Tom')).content[0].text).toBe(
      'IDEMPOTENCY_KEY_REUSED: This Idempotency-Key was used for another input; a new creation needs a new key.',
    );
    const json = { name: 'Rex', categoryId: BigInt(big), status: 'sold' };
    const again = await rest(store, '/v1/pets', {
      method: 'POST',
      json,
      headers: { 'idempotency-key': 'one' },
    });
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([
      201,
      'true',
    ]);
  });

  test('try a creation that is rolled back, and claim no key', async () => {
    const key = { idempotencyKey: 'tried' };
    const dryRun = { ...rex, ...key, isDryRun: true };
    const tried = await call('create_pet', dryRun);
    expect(tried.structuredContent).toMatchObject({ name: rex.name });
    for (const isDryRun of ['true', 'false', 1, {}])
      expect(await call('create_pet', { ...dryRun, isDryRun })).toEqual(
        failure('BAD_USER_INPUT: isDryRun must be a boolean.'),
      );
    const wrong = { ...rex, categoryId: 'x', isDryRun: true };
    expect(await call('create_pet', wrong)).toMatchObject({ isError: true });
    const list = () => call('list_pets', {});
    expect((await list()).structuredContent.items).toEqual([]);
    for (const isDryRun of [false, null]) {
      const name = `${isDryRun}`;
      await call('create_pet', { ...rex, name, isDryRun });
    }
    const other = { ...rex, name: 'other', ...key };
    await call('create_pet', other);
    const { items } = (await list()).structuredContent;
    expect(items.map(({ name }: { name: string }) => name)).toEqual([
      'false',
      'null',
      'other',
    ]);
    const read = await call('list_pets', { isDryRun: true });
    expect(read).toMatchObject({ isError: true });
  });

  test.each<[string, string, object, string]>([
    [
      'a missing member',
      'create_pet',
      { name: 'Rex' },
      'categoryId is required.',
    ],
    [
      'an object for text',
      'list_pets',
      { status: { toString: 1 } },
      'status must be one of available, pending, sold.',
    ],
    [
      'a text that is not an int64',
      'create_pet',
      { name: 'Rex', categoryId: '1e3' },
      'categoryId must be an integer between -9223372036854775808 and 9223372036854775807, not a string.',
    ],
    [
      'a prototype',
      'list_pets',
      { constructor: 1 },
      'An argument is unknown; known are status, limit, after, before, sort.',
    ],
    [
      'a header in the key',
      'create_pet',
      { ...rex, idempotencyKey: 'a\r\nX: y' },
      'Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string.',
    ],
  ])(
    'return the error of %s to the assistant',
    async (_name, tool, args, message) => {
      expect(await call(tool, args)).toEqual(
        failure(`BAD_USER_INPUT: ${message}`),
      );
      expect((await call('list_pets', {})).structuredContent.items).toEqual([]);
    },
  );

  test('exclude deprecated and unknown operations, and take arguments as an object only', async () => {
    for (const name of ['get_pet', 'list_orders', '__proto__', '', 5, null]) {
      const { status, json } = await rpc('tools/call', { name });
      expect([status, json.error.code]).toEqual([200, -32602]);
    }
    for (const args of [[], 'x', null]) {
      const { json } = await rpc('tools/call', {
        name: 'list_pets',
        arguments: args,
      });
      expect(json.error.code).toBe(-32602);
    }
  });

  test('refuse a creation with a key that may only read', async () => {
    const { key } = await store.keys.issue({ name: 'reader', scope: 'read' });
    const message =
      'FORBIDDEN: This needs an API key with the scope "pets:write".';
    expect(await call('create_pet', rex, { ...store, key })).toEqual(
      failure(message),
    );
  });

  test('refuse numbers where text belongs, and deep nesting, before they are read', async () => {
    const number = await callRaw(
      'create_pet',
      '{"name":1e400,"categoryId":"5"}',
    );
    expect(number).toEqual(
      failure('BAD_USER_INPUT: name must be a string, not a number.'),
    );
    const deep = await callRaw(
      'list_pets',
      `{"status":${'['.repeat(19_000)}${']'.repeat(19_000)}}`,
    );
    expect(deep).toEqual(
      failure('BAD_USER_INPUT: The arguments are nested too deeply.'),
    );
  });
});

describe('a request', () => {
  test.each<
    [
      what: string,
      status: number,
      code: string,
      body: string,
      headers?: Record<string, string>,
    ]
  >([
    ['bad JSON', 400, 'BAD_USER_INPUT', '{"jsonrpc":'],
    [
      'a batch',
      400,
      'BAD_USER_INPUT',
      '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    ],
    [
      'a response',
      400,
      'BAD_USER_INPUT',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
    ],
    [
      'an id that JSON.parse would round',
      400,
      'BAD_USER_INPUT',
      `{"jsonrpc":"2.0","id":${big},"method":"ping"}`,
    ],
    [
      'parameters in an array',
      400,
      'BAD_USER_INPUT',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    ],
    [
      '1001 arguments',
      400,
      'BAD_USER_INPUT',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_pets","arguments":{${names(1001)}}}}`,
    ],
    [
      '1001 parameters',
      400,
      'BAD_USER_INPUT',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":{${names(1001)}}}`,
    ],
    [
      '1001 members',
      400,
      'BAD_USER_INPUT',
      `{"jsonrpc":"2.0","id":1,"method":"ping",${names(998)}}`,
    ],
    ['2 MB', 413, 'PAYLOAD_TOO_LARGE', `{"x":"${'x'.repeat(2e6)}"}`],
    [
      'another media type',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      '{}',
      { 'content-type': 'text/plain' },
    ],
    [
      'a wrong key and a bad body',
      401,
      'UNAUTHENTICATED',
      '{',
      { authorization: 'Bearer wrong' },
    ],
  ])('with %s is refused', async (_what, status, code, body, headers) => {
    expect(await post(store, body, headers)).toMatchObject({
      status,
      json: { code, status },
    });
  });

  test('of a page is refused, unless CORS_ORIGINS names its origin, or page and service are of this machine', async () => {
    const from = (origin: string, host = 'store.example') =>
      post(store, { jsonrpc: '2.0', id: 1, method: 'ping' }, { origin, host });
    const message =
      'This Origin is not allowed. CORS_ORIGINS lists those that are.';
    const { host } = new URL(store.origin);
    for (const [origin, at] of [
      ['null', host],
      ['https://shop.example.evil.example', host],
      ['http://localhost.evil.example', host],
      ['http://127.0.0.1.evil.example:80', host],
      // DNS rebinding: the name of the page is resolved to this machine.
      ['http://evil.example', 'evil.example'],
      ['http://localhost:3000', 'evil.example'],
      ['http://localhost:3000', 'localhost.evil.example'],
    ]) {
      const json = { code: 'FORBIDDEN', message, status: 403 };
      expect(await from(`${origin}`, at)).toMatchObject({ status: 403, json });
    }
    for (const origin of [
      store.origin,
      'http://localhost:3000',
      'https://[::1]',
    ]) {
      for (const at of [host, 'localhost', '[::1]:4000'])
        expect((await from(origin, at)).status).toBe(200);
    }
    const allowed = await from('https://shop.example');
    expect([
      allowed.status,
      allowed.headers['access-control-allow-origin'],
    ]).toEqual([200, 'https://shop.example']);
  });

  test('by GET is 405, because there are no streams; without MCP=true it is 404', async () => {
    const response = await rest(store, '/mcp');
    expect([response.status, response.headers.allow]).toEqual([
      405,
      'OPTIONS, POST',
    ]);
    await onNode(store, {}, async (node) =>
      expect((await rpc('ping', undefined, node)).status).toBe(404),
    );
  });
});

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
(citusLayout ? describe.skip : describe)('other modules', () => {
  const lines: unknown[] = [];
  const ended: RequestObserver['ended'] = (
    { id, originalUrl, call },
    { statusCode },
    end,
  ) =>
    lines.push([
      id,
      originalUrl,
      call.caller?.id,
      statusCode,
      end.isAnswered,
      { api: end.api, id: end.id },
    ]);
  const observers = [{ request: { ended } }];
  const more = storeForAll({ MCP: 'true' }, undefined, {
    more: [toysModule, checkupsModule],
    observers,
  });

  test('log a call twice: as the operation, and as the request to /mcp', async () => {
    const areLogged = () =>
      eventually(async () => more.app.activeRequests.count === 0);
    await areLogged();
    lines.length = 0;
    await call('list_toys', { limit: 5 }, more);
    await areLogged();
    const id = expect.any(String);
    expect(lines).toEqual([
      [id, '/v1/toys?limit=5', 1, 200, true, { api: 'rest', id: 'listToys' }],
      [id, '/mcp', 1, 200, true, { api: 'other', id: undefined }],
    ]);
    const [[first], [second]] = lines as [[string], [string]];
    expect(first).toBe(second);
  });

  test('get tools of their own operations: a list, a creation, a change and a removal', async () => {
    const { tools } = (await rpc('tools/list', undefined, more)).json.result;
    const byName = Object.fromEntries(
      tools.map((tool: { name: string }) => [tool.name, tool]),
    );
    expect(byName).not.toHaveProperty('get_toy');
    expect(byName.create_toy.inputSchema.properties.note).toMatchObject({
      type: ['string', 'null'],
      maxLength: 1000,
    });
    expect(byName.remove_checkup.annotations).toMatchObject({
      destructiveHint: true,
      idempotentHint: true,
    });
    expect(byName.change_checkup.inputSchema.required).toEqual([
      'checkupId',
      'version',
    ]);

    await sql(
      more.database,
      `insert into toy (id, name, kind, made_at) values (${big}, 'x', 'ball', now())`,
    );
    const madeAt = '2026-11-21T12:34:56.789Z';
    const toy = { name: 'Bone', kind: 'bone', note: null, madeAt };
    expect((await call('create_toy', toy, more)).structuredContent).toEqual({
      id: '1',
      ...toy,
    });
    const { items } = (await call('list_toys', { kind: 'ball' }, more))
      .structuredContent;
    expect(items).toMatchObject([{ id: big, note: null }]);

    const { id: petId } = (
      await call('create_pet', { name: 'Rex', categoryId: '1' }, more)
    ).structuredContent;
    const checkup = (
      await call('create_checkup', { petId, reason: 'vaccination' }, more)
    ).structuredContent;
    expect(checkup).toMatchObject({ petId, state: 'planned', note: null });
    const change = {
      checkupId: checkup.id,
      version: 1,
      state: 'done',
      note: 'fine',
    };
    const changed = { ...checkup, state: 'done', note: 'fine', version: 2 };
    expect(
      (await call('change_checkup', change, more)).structuredContent,
    ).toEqual(changed);
    const conflict = failure(
      'CONFLICT: It has version 2, not 1: read it again.',
    );
    expect(await call('change_checkup', change, more)).toEqual(conflict);
    expect(
      await call('remove_checkup', { checkupId: checkup.id }, more),
    ).toEqual({
      content: [{ type: 'text', text: expect.any(String) }],
    });
    const gone = failure(
      `NOT_FOUND: There is no checkup with the id ${checkup.id}.`,
    );
    expect(
      await call('remove_checkup', { checkupId: checkup.id }, more),
    ).toEqual(gone);
    // `..` would be the path of another operation.
    expect(
      await call('remove_checkup', { checkupId: '..' }, more),
    ).toMatchObject({ isError: true });
  });
});
