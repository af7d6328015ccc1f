import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { startForTest } from '@animal-store/engine/testing';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { service } from '../src/service.ts';

const issuer = 'https://login.example';
const { publicKey, privateKey } = await generateKeyPair('ES256');
const keys = JSON.stringify({ keys: [await exportJWK(publicKey)] });
const provider = createServer((_, response) => response.end(keys));
await new Promise<void>((done) => provider.listen(0, '127.0.0.1', done));
const { port } = provider.address() as { port: number };
const { origin, close } = await startForTest(service, {
  JWT_ISSUER: issuer,
  JWT_AUDIENCE: 'practice',
  JWT_JWKS_URL: `http://127.0.0.1:${port}/`,
  JWT_TENANT: 'clinic',
  MCP: 'true',
});
after(async () => {
  provider.close();
  await close();
});

const tokenOf = (sub: string, clinic: string) =>
  new SignJWT({ scope: 'read write', clinic })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(issuer)
    .setAudience('practice')
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(privateKey);
const ada = await tokenOf('ada', 'north');
const bob = await tokenOf('bob', 'south');

async function ask(token: string, path: string, body?: object) {
  const response = await fetch(origin + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: await response.json() };
}
const idOf = async (path: string, body: object) =>
  (await ask(ada, path, body)).json.id as number;

const person = { name: 'Ida', email: 'ida@example.org' };
const customerId = await idOf('/v1/customers', person);
const animalId = await idOf('/v1/animals', {
  customerId,
  name: 'Rex',
  chip: 276,
});
const newVisit = (day: string, treatments: object[]) => ({
  animalId,
  at: `2026-12-${day}T09:00:00Z`,
  reason: 'It limps.',
  treatments,
});
const price = { name: 'X-ray', price: '80.10' };

test('a visit is stored with its treatments, or not at all', async () => {
  const added = await ask(ada, '/v1/full-visits', newVisit('05', [price]));
  assert.equal(added.status, 201);
  assert.equal(added.json.treatments[0].price, '80.10');
  const wrong = [price, { name: 'X-ray', price: '1.001' }];
  const refused = await ask(ada, '/v1/full-visits', newVisit('06', wrong));
  assert.equal(refused.status, 400);
  const visits = await ask(ada, '/v1/visits');
  assert.equal(visits.json.length, 1);
});

test('a range of visits, and what a time brought', async () => {
  await ask(ada, '/v1/full-visits', newVisit('20', [price, price]));
  const since = '2026-12-10T00:00:00Z';
  const later = await ask(ada, `/v1/visits?at_gte=${since}&sort=at`);
  assert.equal(later.json.length, 1);
  const time = `from=${since}&before=2027-01-01T00:00:00Z`;
  const { json } = await ask(ada, `/v1/turnover?${time}`);
  assert.deepEqual(json, [{ name: 'X-ray', treatments: 2, total: '160.20' }]);
});

test('no clinic sees, relates to or changes rows of another one', async () => {
  const found = await ask(bob, `/v1/visits?animalId=${animalId}`);
  assert.deepEqual(found.json, []);
  assert.equal((await ask(bob, `/v1/customers/${customerId}`)).status, 404);
  const taken = { customerId, name: 'Max', chip: 277 };
  assert.equal((await ask(bob, '/v1/animals', taken)).status, 400);
  const query = '{ customers { name animals { visits { reason } } } }';
  const { json } = await ask(bob, '/graphql', { query });
  assert.deepEqual(json, { data: { customers: [] } });
});

test('only its writer sees a note', async () => {
  const eve = await tokenOf('eve', 'north');
  await idOf('/v1/notes', { text: 'Call Ida.' });
  assert.equal((await ask(ada, '/v1/notes')).json.length, 1);
  assert.deepEqual((await ask(eve, '/v1/notes')).json, []);
});

test('a live list tells its clinic of a visit', async () => {
  const stream = await fetch(`${origin}/v1/visits`, {
    headers: { authorization: `Bearer ${ada}`, accept: 'text/event-stream' },
  });
  const visit = { animalId, at: '2027-01-05T09:00:00Z', reason: 'Vaccination' };
  await ask(ada, '/v1/visits', visit);
  let text = '';
  for await (const part of stream.body ?? []) {
    text += Buffer.from(part);
    if (text.includes('Vaccination')) break;
  }
});

test('an assistant finds the operations of the practice', async () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const { json } = await ask(ada, '/mcp', call);
  const names = json.result.tools.map(({ name }: { name: string }) => name);
  assert.ok(names.includes('create_full_visit'));
});
