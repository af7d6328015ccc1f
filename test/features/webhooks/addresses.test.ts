import { promises } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Agent } from 'node:https';
import { type AddressInfo, createServer as listen } from 'node:net';
import { hostname } from 'node:os';
import { Courier, publicOnly } from '#engine/features/webhooks/post.js';
import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { sql } from '../../support/database-access.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  expect,
  test,
} from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { NameServer } from './name-server.ts';

// With a contract of its own.
const store = storeForAll({ WEBHOOKS: 'true' }, undefined, {
  more: [ledgersModule],
});
afterEach(() => sql(store.database, 'delete from webhook'));

const names = new NameServer({
  localhost: '127.0.0.1',
  [hostname().toLowerCase()]: '127.0.0.1',
  'rebound.example': '169.254.169.254',
  'ipv4.example': '1.1.1.1',
  'shop.example': '1.1.1.1',
  'silent.example': null,
});
beforeAll(() => names.open());
afterAll(() => names.close());

const create = (url: string) =>
  rest(store, '/v1/webhooks', {
    method: 'POST',
    json: { url, types: ['pets.added'] },
  });

const refused = [
  'http://shop.example/hook',
  'ftp://shop.example/hook',
  'file:///etc/passwd',
  'data:text/plain,x',
  'javascript:alert(1)',
  'shop.example/hook',
  '//shop.example/hook',
  '',
  'https://',
  'https://user:secret@shop.example/',
  'https://user@shop.example/',
  'https://0.0.0.0/',
  'https://0/',
  'https://10.1.2.3/',
  'https://100.64.0.1/',
  'https://127.0.0.1/',
  'https://127.1/',
  'https://0x7f.0.0.1/',
  'https://0177.0.0.1/',
  'https://2130706433/',
  'https://127.255.255.254:8443/',
  'https://169.254.169.254/latest/meta-data/',
  'https://0xa9fea9fe/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.0.0.1/',
  'https://192.0.2.1/',
  'https://192.168.0.1/',
  'https://198.18.0.1/',
  'https://198.19.255.255/',
  'https://198.51.100.7/',
  'https://203.0.113.7/',
  'https://224.0.0.1/',
  'https://240.0.0.1/',
  'https://255.255.255.255/',
  'https://１２７.0.0.1/',
  'https://[::]/',
  'https://[::1]/',
  'https://[::127.0.0.1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:a00:1]/',
  'https://[::ffff:169.254.169.254]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b:1::7f00:1]/',
  'https://[100::1]/',
  'https://[2001::1]/',
  'https://[2001:db8::1]/',
  'https://[2002:7f00:1::]/',
  'https://[3fff::1]/',
  'https://[fc00::1]/',
  'https://[fd12:3456:789a::1]/',
  'https://[fe80::1]/',
  'https://[fec0::1]/',
  'https://[ff02::1]/',
];

test.each(refused)('the address %s is refused', async (url) => {
  const { status, json } = await create(url);
  expect([status, json.code]).toEqual([400, 'BAD_USER_INPUT']);
  expect(json.message).toMatch(/^url must be/);
});

test.each([
  'https://shop.example/hook?a=1#b',
  'https://shop.example:8443/',
  'https://1.1.1.1/',
  'https://172.32.0.1/',
  'https://100.128.0.1/',
  'https://192.169.0.1/',
  'https://[2606:4700:4700::1111]/',
  'https://[2a00:1450:4001:81b::200e]/',
])('the address %s is public', (url) => {
  const courier = new Courier(false);
  expect(courier.urlOf(url).href).toContain('https://');
  courier.close();
});

test('a change cannot lead to a private address', async () => {
  const { json } = await create('https://shop.example/');
  const { status } = await rest(store, `/v1/webhooks/${json.id}`, {
    method: 'PATCH',
    json: { version: 1, url: 'https://127.0.0.1/' },
  });
  expect(status).toBe(400);
});

/** These have addresses of this machine, or none. */
const closed = [
  'localhost',
  'localhost.',
  'LOCALHOST',
  hostname(),
  'rebound.example',
  'no.invalid',
];

test.each(closed)('no connection is opened to the name %s', async (name) => {
  let connections = 0;
  const server = listen(() => {
    connections += 1;
  }).listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const { json } = await create(`https://${name}:${port}/`);
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name: 'x', categoryId: 1 },
    });
    const stateOf = async () =>
      (await rest(store, `/v1/webhooks/${json.id}`)).json;
    await eventually(async () => (await stateOf()).deliveries.length > 0);
    const { deliveries, state } = await stateOf();
    expect([state, deliveries[0].error]).toEqual([
      'failing',
      'It has no public address.',
    ]);
    expect(connections).toBe(0);
  } finally {
    server.close();
  }
});

test('an address that was stored before is checked again', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { json } = await create('https://shop.example/');
  for (const url of [
    `http://127.0.0.1:${port}/`,
    `https://127.0.0.1:${port}/`,
  ]) {
    const set = `update webhook set url = $1, is_tested = true, log = '[]'`;
    await sql(store.database, set, [url]);
    const logOf = async () =>
      (await rest(store, `/v1/webhooks/${json.id}`)).json.deliveries;
    await eventually(async () => (await logOf()).length > 0);
    expect((await logOf())[0].error).toMatch(/^url must be/);
  }
  server.close();
});

const lookUp = (name: string) =>
  new Promise<unknown[]>((resolve) =>
    publicOnly(name, { all: true }, (...all: unknown[]) => resolve(all)),
  );

test('a connection gets the addresses that were checked', async () => {
  const [error] = await lookUp('localhost');
  expect(error).toEqual(new Error('It has no public address.'));
  const open = await lookUp('shop.example');
  expect(open).toEqual([null, [{ address: '1.1.1.1', family: 4 }]]);
});

test('a name whose server is silent delays no other look-up', async () => {
  const silent = Array.from({ length: 8 }, () => lookUp('silent.example'));
  let ended = 0;
  for (const one of silent) void one.then(() => (ended += 1));
  await eventually(async () => names.asked.has('silent.example'));
  // That of the database.
  await promises.lookup('localhost');
  expect(await lookUp('shop.example')).toHaveLength(2);
  expect(ended).toBe(0);
  names.speak();
  await Promise.all(silent);
});

test('a name whose server is silent about IPv6 is found in time', async () => {
  const began = performance.now();
  const open = await lookUp('ipv4.example');
  expect(open).toEqual([null, [{ address: '1.1.1.1', family: 4 }]]);
  // A delivery has ten.
  expect(performance.now() - began).toBeLessThan(8000);
});

test('a far address has time to answer, before the next one is tried', async () => {
  const { createConnection } = Agent.prototype;
  const opened: object[] = [];
  Agent.prototype.createConnection = (options) => {
    opened.push(options);
    throw new Error('No test opens it.');
  };
  const courier = new Courier(false);
  const url = 'https://shop.example/';
  const receiver = { url, secrets: [], subscription: null };
  const posted = courier.post(receiver, { id: 'id', body: {} });
  await posted.catch(() => undefined);
  Agent.prototype.createConnection = createConnection;
  courier.close();
  expect(opened).toMatchObject([{ autoSelectFamilyAttemptTimeout: 2000 }]);
});
