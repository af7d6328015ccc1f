import { feature } from '#engine/feature.js';
import { Log } from '#engine/runtime/log/log.js';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/** What a feature or a module adds to the log line of a request. */

const tenants = feature({
  name: 'tenants',
  variables: {},
  async start() {
    return {
      http(app) {
        app.addHook('onRequest', async ({ call, headers }) => {
          if (!headers['x-tenant']) return;
          const text = decodeURIComponent(`${headers['x-tenant']}`);
          const tenant = JSON.parse(text);
          call.details = { tenant, isGuest: true, size: 3 };
        });
      },
    };
  },
});

const store = storeForAll();
const lines: string[] = [];
const write = (line: string) => void lines.push(line);
const log = new Log({ level: 'info', sample: 1 }, { write });
const node = nodeForAll(store, {}, { log, parts: [tenants] });

async function lineOf(tenant: string) {
  const headers = { 'x-tenant': encodeURIComponent(JSON.stringify(tenant)) };
  await rest(node, '/v1/pets?limit=1', { headers });
  await new Promise((resolve) => setImmediate(resolve));
  return lines.pop() ?? '';
}

test.each([
  'acme',
  '","status":500,"x":"',
  'back\\slash" and }{',
  'two\nlines\u2028\u0000\u001b[31m',
  'Zürich 🐶 \ud800',
])('any text is one member of one line: %j', async (tenant) => {
  const line = await lineOf(tenant);
  expect(line.trimEnd()).not.toContain('\n');
  const { details, status, msg } = JSON.parse(line);
  expect(details).toEqual({ tenant, isGuest: true, size: 3 });
  expect([status, msg]).toEqual([200, 'answered']);
});

test('a secret in it is cut off', async () => {
  expect(await lineOf(`of ${store.key}`)).not.toContain(store.key.slice(0, 12));
});
