import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool, rpc } from './mcp.ts';

/** What a call of a tool costs. */

const store = storeForAll({ MCP: 'true', QUOTA_PER_MINUTE: '30' });

test('a tool costs what REST costs; lists of tools are free', async () => {
  for (let count = 0; count < 40; count += 1)
    expect((await rpc(store, 'tools/list')).status).toBe(200);
  const rex = { name: 'Rex', categoryId: '9007199254740993' };
  await callTool(store, 'create_pet', rex);
  const { headers } = await rest(store, '/v1/pets?limit=1');
  expect(headers.ratelimit).toMatch(/r=26;/);
  for (let count = 0; count < 13; count += 1)
    await callTool(store, 'list_pets', {});
  const { content } = await callTool(store, 'list_pets', {});
  expect(content[0].text).toMatch(
    /^TOO_MANY_REQUESTS: This key has used its 30 units of this minute. Try again in \d+ s.$/,
  );
});
