import {
  Client,
  StreamableHTTPClientTransport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import { storeForAll } from '../../../support/store.ts';

/**
 * The official client of the Model Context Protocol, which also validates each
 * result by the tool's output schema.
 */

const store = storeForAll({ MCP: 'true' });
beforeEach(() => store.empty());

let client: Client;
afterEach(() => client.close());

async function connect(
  mode: VersionNegotiationMode | undefined,
  key = store.key,
): Promise<void> {
  client = new Client(
    { name: 'test', version: '1' },
    mode && { versionNegotiation: { mode } },
  );
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${store.origin}/mcp`), {
      requestInit,
    }),
  );
}

describe.each<[string, VersionNegotiationMode | undefined, string]>([
  ['with its default settings', undefined, '2025-11-25'],
  ['without sessions', 'auto', '2026-07-28'],
])('%s', (_name, mode, version) => {
  test('the client lists the tools, creates once, reads the pages and gets errors', async () => {
    await connect(mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      'list_pets',
      'create_pet',
    ]);
    const args = {
      name: 'Rex',
      categoryId: '9007199254740993',
      idempotencyKey: `rex ${version}`.replace(' ', '-'),
    };
    const { structuredContent: rex } = await client.callTool({
      name: 'create_pet',
      arguments: args,
    });
    expect(rex).toEqual({
      id: expect.any(String),
      name: 'Rex',
      categoryId: '9007199254740993',
      status: 'available',
    });
    expect(
      (await client.callTool({ name: 'create_pet', arguments: args }))
        .structuredContent,
    ).toEqual(rex);
    await client.callTool({
      name: 'create_pet',
      arguments: { ...args, name: 'Tom', idempotencyKey: `${version}` },
    });

    const names: string[] = [];
    let after: string | undefined;
    do {
      const result = await client.callTool({
        name: 'list_pets',
        arguments: { limit: 1, ...(after && { after }) },
      });
      const page = result.structuredContent as {
        items: Array<{ name: string }>;
        next?: string;
      };
      names.push(...page.items.map(({ name }) => name));
      after = page.next;
    } while (after);
    expect(names).toEqual(['Rex', 'Tom']);

    const text = 'BAD_USER_INPUT: limit must be an integer between 1 and 100.';
    const refused = await client.callTool({
      name: 'list_pets',
      arguments: { limit: 101 },
    });
    expect(refused).toMatchObject({
      isError: true,
      content: [{ type: 'text', text }],
    });
    await expect(
      client.callTool({ name: 'get_pet', arguments: {} }),
    ).rejects.toMatchObject({ code: -32602 });
  });

  test('the client gets the tools that its key may use, and no connection with a wrong key', async () => {
    const { key } = await store.keys.issue({
      name: `reader ${version}`,
      scope: 'read',
    });
    await connect(mode, key);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      'list_pets',
    ]);
    await expect(connect(mode, 'wrong')).rejects.toThrow(
      /The API key is not valid\.|HTTP 401/,
    );
  });
});
