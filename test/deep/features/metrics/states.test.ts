// runs: embedded, postgres

import { once } from 'node:events';
import { connect } from 'node:net';
import { follow } from '../../../support/events.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import { startMeasured } from '../../../support/metrics.ts';
import { eventually, ownsSessions } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { TcpProxy } from '../../../support/servers/tcp-proxy.ts';
import { urlOf } from '../../../support/session.ts';

const database = databaseForEach();
const isUp = 'animal_store_dependency_up{dependency="postgresql"}';

test('live lists are counted with their items; a draining server says so', async () => {
  const server = await startMeasured({
    ...database.env,
    DRAIN_DELAY_MS: '600000',
  });
  const metric = async (name: string) => (await server.metrics()).get(name);
  const [open, closed] = await Promise.all(
    [1, 2].map(() => follow(server, { after: '0' })),
  );
  const json = { name: 'Rex', categoryId: 5 };
  for (let time = 1; time <= 2; time += 1)
    await rest(server, '/v1/pets', { method: 'POST', json });
  for (const stream of [open, closed]) await stream?.until(2);
  expect(await metric('animal_store_subscriptions')).toBe(2);
  closed?.close();
  await eventually(
    async () => (await metric('animal_store_subscriptions')) === 1,
  );
  expect(await metric('animal_store_subscription_items_total')).toBe(4);
  const operation =
    'animal_store_operations_total{api="graphql",operation="petAdded",code="OK"}';
  expect(await metric(operation)).toBe(1);
  expect(await metric('http_server_aborted_requests_total')).toBe(0);

  server.child.kill('SIGTERM');
  const ready = () => send(server.origin, { path: '/readyz' });
  await eventually(async () => (await ready()).status === 503);
  expect([await metric('animal_store_draining'), await metric(isUp)]).toEqual([
    1, 1,
  ]);
  server.child.kill('SIGKILL');
});

test('connections beyond MAX_CONNECTIONS are counted', async () => {
  const server = await startMeasured({
    ...database.env,
    MAX_CONNECTIONS: '8',
    TRUST_PROXY: '10.0.0.1',
  });
  const port = Number(new URL(server.origin).port);
  const metric = async (name: string) => (await server.metrics()).get(name);
  await eventually(
    async () => (await metric('animal_store_connections')) === 0,
  );
  const sockets = Array.from({ length: 28 }, () =>
    connect(port, '127.0.0.1').on('error', () => undefined),
  );
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await eventually(
    async () => (await metric('animal_store_connections_refused_total')) === 20,
  );
  expect(await metric('animal_store_connections')).toBe(8);
  for (const socket of sockets) socket.destroy();
});

(ownsSessions ? describe : describe.skip)(
  'a database that does not answer (PostgreSQL only, without a pooler)',
  () => {
    test('is reported, and concurrent scrapes share one query', async () => {
      const proxy = new TcpProxy(new URL(urlOf(database)));
      await proxy.open();
      const server = await startMeasured({
        DATABASE_POOL_MAX: '2',
        DATABASE_URL: proxy.url,
      });
      proxy.isSilent = true;
      const all = await Promise.all(
        Array.from({ length: 8 }, () => server.metrics()),
      );
      expect(all.map((series) => series.get(isUp))).toEqual(Array(8).fill(0));
      // With a query for each scrape, six scrapes would wait for a connection.
      const pending = 'db_client_connection_pending_requests{pool="primary"}';
      expect(all.map((series) => series.get(pending))).toEqual(
        Array(8).fill(0),
      );
      proxy.isSilent = false;
      proxy.cut();
      await proxy.open();
      await eventually(async () => (await server.metrics()).get(isUp) === 1);
      proxy.cut();
    });
  },
);
