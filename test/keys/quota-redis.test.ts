import { createServer, type Server } from 'node:net';
import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { type ServiceNode, startNode } from '../support/nodes.ts';
import { eventually } from '../support/process.ts';
import { createRedis, hasRedis, type TestRedis } from '../support/redis.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

const describeWithRedis = hasRedis ? describe : describe.skip;

describeWithRedis('a quota in Redis (skipped where no redis-server is installed; Debian: redis-server)', () => {
  let store: Store;
  let redis: TestRedis;
  let nodes: [ServiceNode, ServiceNode];
  beforeAll(async () => {
    store = await startStore();
    await stock(store.database, 9);
  });
  beforeEach(async () => {
    redis = await createRedis();
    await redis.start();
    const env = { QUOTA_PER_MINUTE: '100', REDIS_URL: redis.url };
    nodes = [await startNode(store, env), await startNode(store, env)];
    for (const node of nodes) await eventually(async () => (await ready(node)).text === '{"status":"ok"}');
  });
  afterEach(async () => {
    for (const node of nodes) await node.close();
    await redis.kill();
  });
  afterAll(() => store.close());

  const ready = ({ origin }: ServiceNode) => send(origin, { path: '/readyz' });
  const left = (response: { headers: Record<string, unknown> }) =>
    Number(/r=(\d+)/.exec(`${response.headers.ratelimit}`)?.[1]);
  const list = (node: ServiceNode) => rest(node, '/v1/pets');
  const query = (node: ServiceNode) => graphqlText(node, { query: '{ pets { id } }' });

  test('is one for all nodes and both faces', async () => {
    const [one, two] = nodes;
    const calls = [list(one), query(two), list(two), query(one)];
    await Promise.all(calls);
    expect(left(await list(one))).toBe(50);
    expect(left(await query(two))).toBe(40);
    for (const call of [list, query, list, query]) expect((await call(two)).status).toBe(200);
    for (const node of nodes) {
      for (const call of [list, query]) {
        const refused = await call(node);
        expect(refused.status).toBe(429);
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
        expect(left(refused)).toBe(0);
      }
    }
  });

  test('is not overdrawn by requests that come to all nodes and both faces at once', async () => {
    const calls = [list, query].flatMap((call) => nodes.map((node) => () => call(node)));
    const answers = await Promise.all(Array.from({ length: 50 }, () => calls.map((call) => call())).flat());
    const served = answers.filter(({ status }) => status === 200).length;
    // Ten units each; the last one may overdraw.
    expect(served).toBeGreaterThan(0);
    expect(served).toBeLessThanOrEqual(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(200 - served);
  });

  test('is counted by each node for itself while Redis is gone, which readiness tells, and together again afterwards', async () => {
    const [one, two] = nodes;
    expect(left(await list(one))).toBe(90);
    await redis.kill();
    for (const node of nodes) {
      await eventually(async () => (await ready(node)).text.includes('quotas'));
      const { status, text } = await ready(node);
      expect({ status, body: JSON.parse(text) }).toEqual({
        status: 200,
        body: { status: 'ok', quotas: 'per node: Redis cannot be used' },
      });
      expect(left(await list(node))).toBe(90);
      expect(left(await query(node))).toBe(80);
    }
    await redis.start();
    for (const node of nodes) await eventually(async () => (await ready(node)).text === '{"status":"ok"}');
    expect(left(await list(one))).toBe(90);
    expect(left(await query(two))).toBe(80);
  });

  test('a service starts and serves without Redis, and closes', async () => {
    await redis.kill();
    const node = await startNode(store, { QUOTA_PER_MINUTE: '100', REDIS_URL: redis.url });
    expect((await list(node)).status).toBe(200);
    expect((await ready(node)).status).toBe(200);
    expect(JSON.parse((await ready(node)).text)).toHaveProperty('quotas');
    await node.close();
  });

  test('requests under way while Redis dies are answered', async () => {
    const [one] = nodes;
    let isOver = false;
    const statuses = new Set<number>();
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) statuses.add((await rest(one, '/v1/pets/999')).status);
    });
    await redis.kill();
    await eventually(async () => (await ready(one)).text.includes('quotas'));
    isOver = true;
    await Promise.all(load);
    for (const status of statuses) expect([404, 429]).toContain(status);
  });
});

describe('a Redis whose answers are no counts', () => {
  /** Answers what a client asks at first, and every count with these two values. */
  function startLiar(values: string): Promise<Server> {
    const server = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .on('data', (data) => {
          for (const [, name = ''] of data.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
            if (/^eval/i.test(name)) socket.write(`*2\r\n${values}`);
            else socket.write(/^info$/i.test(name) ? '$21\r\nredis_version:7.0.0\r\n\r\n' : '+OK\r\n');
          }
        });
    });
    return new Promise((listening) => server.listen(0, '127.0.0.1', () => listening(server)));
  }

  test.each([
    ['texts', '$1\r\na\r\n$1\r\nb\r\n'],
    ['an empty text', '$0\r\n\r\n$0\r\n\r\n'],
    ['nothing', '$-1\r\n$-1\r\n'],
    ['counts beyond every number', ':9007199254740993\r\n:60000\r\n'],
  ])('(%s) is a failed Redis: the node counts for itself, and says so', async (_what, values) => {
    const server = await startLiar(values);
    const { port } = server.address() as { port: number };
    const store = await startStore({ QUOTA_PER_MINUTE: '100', REDIS_URL: `redis://127.0.0.1:${port}` });
    for (const remaining of [99, 98]) {
      const { status, headers } = await rest(store, '/v1/pets/999');
      expect([status, headers.ratelimit]).toEqual([404, expect.stringMatching(`^"key";r=${remaining};t=\\d+$`)]);
    }
    const { text } = await send(store.origin, { path: '/readyz' });
    expect(JSON.parse(text)).toMatchObject({ quotas: 'per node: Redis cannot be used' });
    await store.close();
    server.close();
  });
});
