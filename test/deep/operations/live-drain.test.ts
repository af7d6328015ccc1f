import { databaseForEach } from '../../support/each.ts';
import { follow, type Stream, seen } from '../../support/events.ts';
import { expect, test } from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import { eventually, runCommand, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { linesOf, startWorkers } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
// A stream that outlived the signal would hold the drain up for longer than a test may take.
const env = () => ({ ...database.env, BOOTSTRAP_API_KEY: key, DRAIN_TIMEOUT_MS: '600000' });
const create = (server: ServerProcess, name: string) =>
  rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
const many = (server: ServerProcess, count: number): Promise<Stream[]> =>
  Promise.all(Array.from({ length: count }, () => follow(server, { after: '0' })));
const drained = { code: 0, signal: null, stderr: '' };

test('at SIGTERM a thousand subscriptions are cut off, and the server ends', async () => {
  const server = await startServer({ ...env(), SUBSCRIPTIONS_PER_KEY: '1000', LOG_LEVEL: 'warn' });
  const streams = await many(server, 1000);
  await create(server, 'Rex');
  for (const stream of streams) await stream.until(1);
  expect(await server.stop()).toMatchObject(drained);
  expect(new Set(await Promise.all(streams.map(({ ended }) => ended)))).toEqual(new Set(['cut']));
  expect(streams.every(({ text }) => !text.includes('event: complete'))).toBe(true);
});

test('while the server drains no subscription begins, and those that are open go on', async () => {
  const server = await startServer({ ...env(), DRAIN_DELAY_MS: '600000' });
  const [open] = await many(server, 1);
  server.child.kill('SIGTERM');
  await eventually(async () => (await follow(server)).status === 503);
  const late = await follow(server);
  expect([late.status, late.headers['retry-after']]).toEqual([503, '1']);
  await create(server, 'Rex');
  await open?.until(1);
  server.child.kill('SIGKILL');
});

test('what is created at one worker is seen by those who follow at another, and all end at SIGTERM', async () => {
  const server = await startWorkers(env(), 2);
  const streams = await many(server, 4);
  for (const name of ['a', 'b', 'c']) await create(server, name);
  for (const stream of streams) {
    await stream.until(3);
    expect(seen(stream)).toEqual(['a', 'b', 'c']);
  }
  expect(await server.stop()).toMatchObject(drained);
});

test('the log has one line for a subscription, and metrics count what is open and sent', async () => {
  const server = await startMeasured(env());
  const [stream] = await many(server, 1);
  for (const name of ['a', 'b']) await create(server, name);
  await stream?.until(2);
  expect((await server.metrics()).get('animal_store_subscriptions')).toBe(1);
  stream?.close();
  await eventually(async () => (await server.metrics()).get('animal_store_subscriptions') === 0);
  const series = await server.metrics();
  expect(series.get('animal_store_subscription_items_total')).toBe(2);
  expect(series.get('animal_store_operations_total{face="graphql",operation="petAdded",code="OK"}')).toBe(1);
  expect(series.get('http_server_aborted_requests_total')).toBe(0);
  await server.stop();
  const lines = linesOf(server.output.stdout).filter(({ fields }) => `${fields}` === 'petAdded');
  expect(lines).toEqual([expect.objectContaining({ operation: 'PetAdded', status: 200, items: 2, msg: 'answered' })]);
});

test('curl -N follows the list', async () => {
  const server = await startServer(env());
  const headers = [`authorization: Bearer ${key}`, 'accept: text/event-stream', 'content-type: application/json'];
  const body = '{"query":"subscription { petAdded { id name } }"}';
  const curl = runCommand(
    ['curl', '-sN', `${server.origin}/graphql`, ...headers.flatMap((header) => ['-H', header]), '-d', body],
    { PATH: process.env.PATH ?? '' },
  );
  await eventually(async () => curl.output.stdout.includes('id: '));
  await create(server, 'Rex');
  const event = 'event: next\nid: 1\ndata: {"data":{"petAdded":{"id":"1","name":"Rex"}}}\n\n';
  await eventually(async () => curl.output.stdout.endsWith(event));
  await server.stop();
  // CURLE_PARTIAL_FILE: nobody takes this for the end.
  expect((await curl.ended).code).toBe(18);
});
