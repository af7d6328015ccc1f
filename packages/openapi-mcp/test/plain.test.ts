import { openApiMcp } from '@animal-store/openapi-mcp';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import Fastify from 'fastify';

/** The plugin in a bare server. */

const big = '9007199254740993';
const id = { type: 'integer', format: 'int64' };
const toy = {
  type: 'object',
  properties: { id, name: { type: 'string' } },
  required: ['name'],
};
const json = (schema: object) => ({
  content: { 'application/json': { schema } },
});
const ofToy = { $ref: '#/components/schemas/Toy' };
const listToys = {
  summary: 'List toys',
  responses: { 200: json({ type: 'array', items: ofToy }) },
};
const createToy = {
  parameters: [{ in: 'header', name: 'Prefer', schema: { type: 'string' } }],
  requestBody: json(ofToy),
  responses: { 201: json(ofToy), 403: {} },
};
const ofBox = {
  type: 'object',
  properties: { boxId: id, name: { type: 'string' } },
};
const changeBox = {
  parameters: [
    ...[{ in: 'path', name: 'boxId', required: true, schema: id }],
    ...[{ in: 'header', name: 'Idempotency-Key', schema: {} }],
  ],
  requestBody: json(ofBox),
  responses: { 200: json(ofBox) },
};
const listBoxes = {
  parameters: ['idempotencyKey', 'isDryRun'].map((name) => ({
    ...{ in: 'query', name, schema: { type: 'string' } },
  })),
  responses: { 200: json(ofBox), 403: {} },
};
/** Its members have the names of what a tool takes beside them. */
const ofCall = {
  type: 'object',
  properties: {
    idempotencyKey: { type: 'string' },
    isDryRun: { type: 'boolean' },
  },
};
const createCall = {
  parameters: ['Idempotency-Key', 'Prefer'].map((name) => ({
    ...{ in: 'header', name, schema: { type: 'string' } },
  })),
  requestBody: json(ofCall),
  responses: { 201: json(ofCall), 403: {} },
};
const document = {
  info: { title: 'Toys', version: '2.0.0', description: 'All toys.' },
  components: { schemas: { Toy: toy } },
  paths: {
    '/toys': {
      get: { operationId: 'listToys', ...listToys },
      post: { operationId: 'createToy', ...createToy },
      put: { operationId: 'replaceToy', responses: { 204: {}, 403: {} } },
    },
    '/boxes/{boxId}': { patch: { operationId: 'changeBox', ...changeBox } },
    '/calls': { post: { operationId: 'createCall', ...createCall } },
    '/boxes': { get: { operationId: 'listBoxes', ...listBoxes } },
    '/broken': {
      get: { operationId: 'broken', responses: { 200: {}, 500: {} } },
    },
    '/old': {
      get: { operationId: 'old', deprecated: true, responses: { 200: {} } },
    },
  },
};

const app = Fastify();
let received: object;
beforeAll(async () => {
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    (_request, body, done) => done(null, body),
  );
  app.get('/toys', async ({ headers }, reply) => {
    received = headers;
    reply
      .header('link', '</toys?after=7&kind=ball>; rel="next"')
      .type('application/json')
      .send(`[{"id":${big}}]`);
  });
  app.patch('/boxes/:boxId', async ({ url, body }, reply) =>
    reply
      .type('application/json')
      .send(`{"name":${JSON.stringify(`${url} ${body}`)}}`),
  );
  app.post('/calls', async ({ headers, body }, reply) => {
    received = headers;
    return reply.type('application/json').send(body);
  });
  app.get('/boxes', async ({ url, headers }, reply) => {
    received = headers;
    return reply.type('application/json').send({ name: url });
  });
  app.get('/broken', async (_request, reply) =>
    reply.code(500).type('text/plain').send('a secret'),
  );
  app.post('/toys', async ({ body, headers }, reply) => {
    if (!headers.authorization)
      throw Object.assign(new Error('Who are you?'), { statusCode: 401 });
    return reply.code(201).type('application/json').send(body);
  });
  await app.register(async (own) => {
    own.removeAllContentTypeParsers();
    own.addContentTypeParser(
      'application/json',
      { parseAs: 'string' },
      own.getDefaultJsonParser('error', 'error'),
    );
    await own.register(openApiMcp, {
      name: 'toys',
      document: () => document,
      origins: [],
      isListed: ({ responses }, { headers }) =>
        !('500' in responses) &&
        (!('403' in responses) || headers.authorization !== undefined),
      refuse: (statusCode, message) =>
        Object.assign(new Error(message), { statusCode }),
      describe: ({ message }) => `${message}`,
    });
  });
});
afterAll(() => app.close());

async function rpc(method: string, params = {}, headers = {}) {
  const response = await app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { 'content-type': 'application/json', ...headers },
    payload: { jsonrpc: '2.0', id: 1, method, params },
  });
  return response.json();
}

const known = { authorization: 'Bearer x' };

test('the server has the info of the document, and lists the tools that the caller may see', async () => {
  const serverInfo = { name: 'toys', title: 'Toys', version: '2.0.0' };
  const result = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo,
    instructions: 'All toys.',
  };
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  };
  expect((await rpc('initialize', params)).result).toEqual(result);
  const names = async (headers = {}) =>
    (await rpc('tools/list', {}, headers)).result.tools.map(
      ({ name }: { name: string }) => name,
    );
  expect([await names(), await names(known)]).toEqual([
    ['list_toys', 'change_box'],
    [
      'list_toys',
      'create_toy',
      'replace_toy',
      'change_box',
      'create_call',
      'list_boxes',
    ],
  ]);
});

test('a tool calls its operation with the headers of the caller, exact to the last digit', async () => {
  const list = (await rpc('tools/call', { name: 'list_toys' })).result;
  expect(list.structuredContent).toEqual({ items: [{ id: big }], next: '7' });
  const call = { name: 'create_toy', arguments: { id: big, name: 'Ball' } };
  expect(
    (await rpc('tools/call', call, known)).result.structuredContent,
  ).toEqual({ id: big, name: 'Ball' });
  // The parser of this server has rounded it.
  const rounded = {
    name: 'create_toy',
    arguments: { id: 2 ** 53, name: 'Ball' },
  };
  const message =
    'id must be text, because most clients round a number beyond 2^53.';
  expect((await rpc('tools/call', rounded, known)).result.content[0].text).toBe(
    message,
  );
  const refused = {
    content: [{ type: 'text', text: 'Who are you?' }],
    isError: true,
  };
  expect((await rpc('tools/call', call)).result).toEqual(refused);
});

test('a dry run that the operation does not know is told as done', async () => {
  const toy = { name: 'Ball', isDryRun: true };
  const call = { name: 'create_toy', arguments: toy };
  expect((await rpc('tools/call', call, known)).result).toEqual({
    content: [{ type: 'text', text: 'It is done: it knows no dry run.' }],
    isError: true,
  });
});

test('a dry run is no argument of an operation without it', async () => {
  const call = { name: 'replace_toy', arguments: { isDryRun: true } };
  const { content } = (await rpc('tools/call', call, known)).result;
  expect(content[0].text).toMatch(/^An argument is unknown/);
});

test('a parameter of an operation is no header of the call', async () => {
  const own = { idempotencyKey: 'a', isDryRun: 'b' };
  const call = { name: 'list_boxes', arguments: own };
  const { result } = await rpc('tools/call', call, known);
  expect(result.structuredContent).toEqual({
    name: '/boxes?idempotencyKey=a&isDryRun=b',
  });
  expect(Object.keys(received)).not.toContain('prefer');
  expect(Object.keys(received)).not.toContain('idempotency-key');
});

test('a member of an operation is no header of the call', async () => {
  const own = { idempotencyKey: 'a', isDryRun: true };
  const call = { name: 'create_call', arguments: own };
  const { result } = await rpc('tools/call', call, known);
  expect(result.structuredContent).toEqual(own);
  expect(Object.keys(received)).not.toContain('prefer');
  expect(Object.keys(received)).not.toContain('idempotency-key');
});

test('a parameter is the argument id where a member has its name', async () => {
  const { tools } = (await rpc('tools/list')).result;
  const { inputSchema } = tools.find(
    ({ name }: { name: string }) => name === 'change_box',
  );
  expect(inputSchema).toMatchObject({
    properties: { id: {}, boxId: {}, name: {}, idempotencyKey: {} },
    required: ['id'],
  });
  const changed = async (args: object) => {
    const call = { name: 'change_box', arguments: args };
    const { structuredContent, content } = (await rpc('tools/call', call))
      .result;
    return structuredContent?.name ?? content[0].text;
  };
  expect(await changed({ id: '2', boxId: big })).toBe(
    `/boxes/2 {"boxId":${big}}`,
  );
  expect(await changed({ id: '2', name: 'x' })).toBe('/boxes/2 {"name":"x"}');
});

test.each<[string, object, string]>([
  ['create_toy', { isDryRun: 'false' }, 'isDryRun must be a boolean.'],
  ['create_toy', { isDryRun: 'true' }, 'isDryRun must be a boolean.'],
  ['create_toy', { isDryRun: 0 }, 'isDryRun must be a boolean.'],
  ['create_toy', { isDryRun: [] }, 'isDryRun must be a boolean.'],
  [
    'change_box',
    { id: '1', idempotencyKey: true },
    'idempotencyKey must be a string.',
  ],
  [
    'change_box',
    { id: '1', idempotencyKey: ['a'] },
    'idempotencyKey must be a string.',
  ],
])('%s refuses %j', async (name, own, message) => {
  const call = { name, arguments: { name: 'Ball', ...own } };
  const { content, isError } = (await rpc('tools/call', call, known)).result;
  expect([isError, content[0].text]).toEqual([true, message]);
});

test('what a tool fails by is not shown', async () => {
  const { error } = await rpc('tools/call', { name: 'broken' });
  expect(error).toEqual({ code: -32603, message: 'The tool has failed.' });
});

test('an operation gets the headers that name the caller, its proxy and its trace, and no others', async () => {
  const passed = {
    ...{
      authorization: 'Bearer x',
      host: 'a.example',
      'user-agent': 'b',
      traceparent: 'c',
    },
    ...{
      'x-forwarded-for': 'd',
      'x-forwarded-host': 'e',
      'x-forwarded-proto': 'f',
      'x-forwarded-prefix': '/g',
    },
  };
  const others = {
    accept: 'text/html',
    cookie: 'h',
    'idempotency-key': 'i',
    'x-forwarded-': 'j',
    forwarded: 'k',
  };
  await rpc('tools/call', { name: 'list_toys' }, { ...passed, ...others });
  expect(received).toEqual({ ...passed, 'x-request-id': expect.any(String) });
});

test('pages of other origins and bodies that are no request are refused', async () => {
  expect(
    await rpc('ping', {}, { origin: 'http://evil.example' }),
  ).toMatchObject({ statusCode: 403 });
  expect(await rpc('ping', [])).toMatchObject({ statusCode: 400 });
});
