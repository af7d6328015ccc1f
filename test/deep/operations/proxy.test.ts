// runs: embedded, postgres

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { heartbeatInterval } from '#engine/api/subscriptions/event-stream.js';
import { databaseForEach } from '../../support/fixtures.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import {
  bootstrapKey,
  eventually,
  freePort,
  onPlainPostgres,
  startServer,
} from '../../support/process.ts';
import {
  hasHaproxy,
  startProxy,
  type TestProxy,
} from '../../support/servers/haproxy.ts';

const headers = {
  authorization: `Bearer ${bootstrapKey}`,
  'content-type': 'application/json',
};
const rex = JSON.stringify({ name: 'Rex', categoryId: 5 });

let proxy: TestProxy | undefined;
afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
});

test('the time limit of the proxy is longer than a live list is without an event or comment', () => {
  const [, timeout] =
    /^ *timeout server (\d+)s$/m.exec(
      readFileSync('operations/proxy/haproxy.cfg', 'utf8'),
    ) ?? [];
  // A comment may be late by one check, and by more on a busy machine.
  expect(Number(timeout) * 1000).toBeGreaterThanOrEqual(
    heartbeatInterval + 5000,
  );
});

const database = databaseForEach();

(onPlainPostgres && hasHaproxy ? test : test.skip)(
  'two nodes behind the proxy of compose.yaml restart one by one under load, no request fails, and the nodes trust the proxy for the origin of a request (skipped without PostgreSQL or HAProxy)',
  async () => {
    const ports = [await freePort(), await freePort()] as [number, number];
    const checks = [await freePort(), await freePort()] as [number, number];
    /** Starts a node with the environment of the image and compose.yaml. */
    const startNode = (at: 0 | 1) =>
      startServer({
        ...database.env,
        PORT: `${ports[at]}`,
        OPERATIONS_PORT: `${checks[at]}`,
        BOOTSTRAP_API_KEY: bootstrapKey,
        TRUST_PROXY: '1',
        DRAIN_DELAY_MS: '5000',
      });
    const nodes = [await startNode(0), await startNode(1)];
    proxy = await startProxy(ports, checks);
    const { origin, hasLogged } = proxy;
    const load = startLoad(origin);
    for (const [at, name] of [
      [0, 'store-1'],
      [1, 'store-2'],
    ] as const) {
      const before = load.answered;
      expect(await nodes[at]?.stop()).toMatchObject({ code: 0, stderr: '' });
      expect(hasLogged(name, 'DOWN')).toBe(true);
      // The other node has served meanwhile.
      expect(load.answered).toBeGreaterThan(before + 100);
      nodes[at] = await startNode(at);
      await eventually(async () => hasLogged(name, 'UP'));
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    const forged = {
      ...{
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-host': 'evil.example',
        'x-forwarded-proto': 'https',
      },
      'x-forwarded-prefix': '/evil',
    };
    const own = { ...headers, ...forged, host: 'shop.example' };
    const { headers: received } = await send(origin, {
      path: '/v1/pets?limit=1',
      headers: own,
    });
    expect(received.link).toMatch(/^<http:\/\/shop\.example\/v1\/pets\?/);
  },
);

/**
 * Starts a node that is ready, and closes the connection of any other request,
 * which it may have executed.
 */
async function startBroken(deliveries: unknown[]) {
  const server = createServer((incoming, response) => {
    if (/^\/(?:livez|readyz)$/.test(incoming.url ?? '')) return response.end();
    deliveries.push(incoming.method);
    incoming.socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () => server.close().closeAllConnections(),
  };
}

(hasHaproxy ? test : test.skip).each([
  ['POST', '/v1/pets', {}, 1],
  ['POST', '/graphql', {}, 1],
  ['POST', '/v1/pets', { 'idempotency-key': 'order-1' }, 3],
  ['GET', '/v1/pets', {}, 3],
])(
  'nodes that close without a response get a %s of %s with %j %d times (skipped without HAProxy)',
  async (method, path, more, times) => {
    const deliveries: unknown[] = [];
    const nodes = [
      await startBroken(deliveries),
      await startBroken(deliveries),
    ] as const;
    proxy = await startProxy([nodes[0].port, nodes[1].port]);
    // The client gets 502, or no response on a reused connection, which
    // HTTP/1.1 allows.
    const body = method === 'POST' ? rex : undefined;
    await send(proxy.origin, {
      method,
      path,
      headers: { ...headers, ...more },
      body,
    }).catch(() => undefined);
    for (const node of nodes) node.close();
    expect(deliveries).toEqual(Array(times).fill(method));
  },
);

/**
 * Starts clients with keep-alive connections that list, create and query
 * GraphQL without a pause.
 */
function startLoad(origin: string) {
  const kinds = [
    { method: 'GET', path: '/v1/pets', headers },
    { method: 'POST', path: '/v1/pets', headers, body: rex },
    {
      method: 'POST',
      path: '/graphql',
      headers,
      body: '{"query":"{ pets { id } }"}',
    },
  ];
  let isStopped = false;
  const load = { answered: 0, failures: [] as string[], stop };
  const loops = Array.from({ length: 12 }, async (_, at) => {
    for (let turn = at; !isStopped; turn++) {
      const kind = kinds[turn % kinds.length] as HttpRequest;
      const result = await send(origin, kind).then(
        ({ status, text }) => `${status} ${text}`,
        String,
      );
      if (/^20[01] /.test(result) && !result.includes('"errors"'))
        load.answered++;
      else load.failures.push(`${kind.method} ${kind.path}: ${result}`);
    }
  });
  function stop(): Promise<unknown> {
    isStopped = true;
    return Promise.all(loops);
  }
  return load;
}
