import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import {
  afterAll,
  beforeAll,
  beforeEach,
  expect,
  test,
} from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { rpc } from '../assistants/mcp.ts';
import { providerForAll } from '../tokens/provider.ts';
import { Receiver } from './receiver.ts';

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    JWT_TENANT: 'tenant',
    MCP: 'true',
    WEBHOOKS: 'true',
    WEBHOOKS_LOCAL: 'true',
  }),
);
const store = storeForAll(env, undefined, { more: [ledgersModule] });
const north = new Receiver();
const south = new Receiver();
beforeAll(async () => {
  for (const one of [north, south]) await one.open();
});
beforeEach(() => {
  for (const one of [north, south]) one.reset();
});
afterAll(async () => {
  for (const one of [north, south]) await one.close();
});

const tokenOf = (sub: string, tenant: string) =>
  provider.token({ scope: 'pets:write', sub, tenant });
const add = (key: string, path: string, json: object) =>
  rest(store, `/v1${path}`, { method: 'POST', json, key });

test('an endpoint of a subject gets what its token may read: changes of its tenant, and its own', async () => {
  const ada = tokenOf('ada', 'north');
  const bob = tokenOf('bob', 'south');
  const types = ['files.added', 'memos.added'];
  const { json } = await add(ada, '/webhooks', { url: north.url, types });
  expect(json.owner).toBe('ada');
  await add(bob, '/webhooks', { url: south.url, types });
  await add(bob, '/files', { text: 'south' });
  await add(ada, '/files', { text: 'north' });
  await add(tokenOf('carol', 'north'), '/memos', { text: 'of carol' });
  await add(tokenOf('carol', 'north'), '/files', { text: 'of carol' });
  await add(ada, '/memos', { text: 'of ada' });
  await add(bob, '/memos', { text: 'of bob' });
  await north.until(3);
  await south.until(2);
  const textsOf = ({ distinct }: Receiver) =>
    distinct.map(({ data }) => data.after.text);
  expect(textsOf(north)).toEqual(['north', 'of carol', 'of ada']);
  expect(textsOf(south)).toEqual(['south', 'of bob']);
});

test('a tenant that PostgreSQL cannot store is none', async () => {
  for (const tenant of ['a\u0000', '\ud800']) {
    const types = ['memos.added'];
    const key = tokenOf('dora', tenant);
    const { status } = await add(key, '/webhooks', { url: north.url, types });
    expect(status).toBe(201);
  }
});

test('a host of a subject in two tenants has a subscription in each', async () => {
  north.answer = (response, message) =>
    response.end(JSON.stringify({ challenge: message.challenge }));
  const ids: string[] = [];
  for (const tenant of ['east', 'west']) {
    const key = tokenOf('dan', tenant);
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
    const delivery = { mode: 'webhook', url: north.url, secret };
    const params = { name: 'files.added', delivery };
    const node = { origin: store.origin, key };
    const { json } = await rpc(node, 'events/subscribe', params);
    ids.push(json.result.id);
  }
  for (const tenant of ['east', 'west'])
    await add(tokenOf('dan', tenant), '/files', { text: tenant });
  expect(new Set(ids).size).toBe(2);
  const messages = await north.until(4);
  const told = messages.map(({ headers, data }) => [
    data?.after.text,
    headers['x-mcp-subscription-id'],
  ]);
  const [east, west] = ids;
  expect(Object.fromEntries(told)).toMatchObject({ east, west });
});

test('a token without the scopes adds no endpoint', async () => {
  const token = provider.token({ scope: 'pets:read', sub: 'eve', tenant: 'x' });
  const types = ['files.added'];
  const { status } = await add(token, '/webhooks', { url: north.url, types });
  expect(status).toBe(403);
});
