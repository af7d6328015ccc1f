import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { heartbeatInterval } from '../../../packages/graphql-streams/src/event-stream.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, freePort, onPlainPostgres, type Running, run } from '../../support/process.ts';
import { hasHaproxy } from '../../support/servers/haproxy.ts';
import { TestProxy } from '../../support/servers/proxy.ts';

const key = 'a-key-for-these-tests-and-no-others';
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
const rex = JSON.stringify({ name: 'Rex', categoryId: 5 });

let proxy: TestProxy | undefined;
afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
});

test('it is more patient than a live list is silent', () => {
  const [, patience] = /^ *timeout server (\d+)s$/m.exec(readFileSync('operations/proxy/haproxy.cfg', 'utf8')) ?? [];
  // A comment may be late by a look, on a busy machine by more.
  expect(Number(patience) * 1000).toBeGreaterThanOrEqual(heartbeatInterval + 5000);
});

describe('two nodes behind the proxy of compose.yaml', () => {
  const database = databaseForEach();
  const onServer = onPlainPostgres && hasHaproxy ? test : test.skip;

  /** A node with the environment that image and compose give it. */
  async function startNode(port: number, operationsPort: number): Promise<Running> {
    const node = run('main', [], {
      ...database.env,
      PORT: `${port}`,
      OPERATIONS_PORT: `${operationsPort}`,
      BOOTSTRAP_API_KEY: key,
      TRUST_PROXY: '1',
      DRAIN_DELAY_MS: '5000',
    });
    await eventually(async () => (await send(`http://127.0.0.1:${port}`, { path: '/readyz' })).status === 200);
    return node;
  }

  onServer(
    'are restarted one by one under load, and no request fails (skipped without PostgreSQL or HAProxy)',
    async () => {
      const ports = [await freePort(), await freePort()] as [number, number];
      const checks = [await freePort(), await freePort()] as [number, number];
      const nodes = [await startNode(ports[0], checks[0]), await startNode(ports[1], checks[1])];
      proxy = await TestProxy.start(ports, checks);
      const load = new Load(proxy.origin);
      for (const at of [0, 1] as const) {
        const name = (['store-1', 'store-2'] as const)[at];
        const before = load.answered;
        nodes[at]?.child.kill('SIGTERM');
        expect(await nodes[at]?.ended).toMatchObject({ code: 0, stderr: '' });
        expect(proxy.noticed(name, 'DOWN')).toBe(true);
        // While it was away, the other one served.
        expect(load.answered).toBeGreaterThan(before + 100);
        nodes[at] = await startNode(ports[at], checks[at]);
        await eventually(async () => proxy?.noticed(name, 'UP') === true);
      }
      await load.stop();
      expect(load.failures).toEqual([]);
      for (const node of nodes) node.child.kill('SIGKILL');
    },
  );

  onServer(
    'believe the proxy, and not the client, about who asks for which host (skipped without PostgreSQL or HAProxy)',
    async () => {
      const ports = [await freePort(), await freePort()] as [number, number];
      const checks = [await freePort(), await freePort()] as [number, number];
      await Promise.all([startNode(ports[0], checks[0]), startNode(ports[1], checks[1])]);
      proxy = await TestProxy.start(ports, checks);
      for (let pet = 0; pet < 2; pet++)
        await send(proxy.origin, { method: 'POST', path: '/v1/pets', headers, body: rex });
      const forged = { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
      const own = { ...headers, ...forged, host: 'shop.example' };
      const { headers: answer } = await send(proxy.origin, { path: '/v1/pets?limit=1', headers: own });
      expect(answer.link).toMatch(/^<http:\/\/shop\.example\/v1\/pets\?/);
    },
  );
});

describe('a node that closes without an answer', () => {
  const withProxy = hasHaproxy ? test : test.skip;
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  /** Is ready, and breaks off every request but those for its health: it may have done what it was told. */
  async function startBroken(deliveries: string[]): Promise<number> {
    const server = createServer((incoming, answer) => {
      if (/^\/(?:livez|readyz)$/.test(incoming.url ?? '')) return answer.end();
      deliveries.push(incoming.method ?? '');
      incoming.socket.destroy();
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  const named = { 'idempotency-key': 'order-1' };
  withProxy.each([
    ['POST', '/v1/pets', {}, 1],
    ['POST', '/graphql', {}, 1],
    ['POST', '/v1/pets', named, 3],
    ['POST', '/graphql', named, 3],
    ['GET', '/v1/pets', {}, 3],
    ['HEAD', '/v1/pets', {}, 3],
  ])('gets a %s of %s with %j %d times at most (skipped without HAProxy)', async (method, path, more, times) => {
    const deliveries: string[] = [];
    proxy = await TestProxy.start([await startBroken(deliveries), await startBroken(deliveries)]);
    // 502; or no answer at all on a connection that has had one, as HTTP/1.1 lets servers do.
    const body = method === 'POST' ? rex : undefined;
    await send(proxy.origin, { method, path, headers: { ...headers, ...more }, body }).catch(() => undefined);
    expect(deliveries).toEqual(Array(times).fill(method));
  });
});

/** Clients on connections that stay open, which create, list and ask GraphQL without a pause. */
class Load {
  answered = 0;
  readonly failures: string[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #loops: Promise<void>[];
  #isStopped = false;

  constructor(private readonly origin: string) {
    this.#loops = Array.from({ length: 12 }, (_, at) => this.#repeat(at));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }

  async #repeat(at: number): Promise<void> {
    const kinds = [
      ['GET', '/v1/pets', undefined],
      ['POST', '/v1/pets', rex],
      ['POST', '/graphql', '{"query":"{ pets { id } }"}'],
    ] as const;
    for (let turn = at; !this.#isStopped; turn++) {
      const [method, path, body] = kinds[turn % kinds.length] as (typeof kinds)[number];
      const seen = await this.#ask(method, path, body);
      if (/^20[01] /.test(seen) && !seen.includes('"errors"')) this.answered++;
      else this.failures.push(`${method} ${path}: ${seen}`);
    }
  }

  /** @returns status and body, or the error */
  #ask(method: string, path: string, body: string | undefined): Promise<string> {
    return new Promise((done) => {
      const length = body === undefined ? {} : { 'content-length': body.length };
      const options = { method, headers: { ...headers, ...length }, agent: this.#agent };
      const outgoing = request(this.origin + path, options, (incoming) => {
        let text = `${incoming.statusCode} `;
        incoming.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        incoming.on('end', () => done(text)).on('error', (error) => done(`${error}`));
      });
      outgoing.on('error', (error) => done(`${error}`));
      outgoing.end(body);
    });
  }
}
