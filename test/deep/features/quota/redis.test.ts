import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { stock } from '../../../support/database-access.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { send } from '../../../support/http.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { TcpProxy } from '../../../support/servers/tcp-proxy.ts';
import {
  onNode,
  type ServiceNode,
  startNode,
  storeForAll,
} from '../../../support/store.ts';
import { createRedis, hasRedis, type TestRedis } from './redis.ts';

const store = storeForAll({}, () => stock(store.database, 9));
const left = ({ headers }: { headers: Record<string, unknown> }) =>
  Number(/r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);
const readiness = async ({ origin }: ServiceNode) => {
  const { status, text } = await send(origin, { path: '/readyz' });
  return { status, body: JSON.parse(text) };
};
const perNode = {
  status: 200,
  body: { status: 'ok', redis: 'cannot be used' },
};
const isShared = async (node: ServiceNode) =>
  JSON.stringify((await readiness(node)).body) === '{"status":"ok"}';

(hasRedis ? describe : describe.skip)(
  'a quota in Redis (skipped without redis-server)',
  () => {
    let redis: TestRedis;
    const nodes: ServiceNode[] = [];
    beforeEach(async () => {
      redis = await createRedis();
      await redis.start();
    });
    afterEach(async () => {
      for (const node of nodes.splice(0)) await node.close();
      await redis.kill();
    });

    const env = (quota: number) => ({
      QUOTA_PER_MINUTE: `${quota}`,
      REDIS_URL: redis.url,
    });
    async function startTwoNodes(
      quota: number,
    ): Promise<[ServiceNode, ServiceNode]> {
      nodes.push(
        await startNode(store, env(quota)),
        await startNode(store, env(quota)),
      );
      for (const node of nodes) await eventually(() => isShared(node));
      return nodes as [ServiceNode, ServiceNode];
    }
    const list = (node: ServiceNode) => rest(node, '/v1/pets');
    const query = (node: ServiceNode) =>
      graphqlText(node, { query: '{ pets { id } }' });

    test('is shared by all nodes and both APIs', async () => {
      const [first, second] = await startTwoNodes(100);
      await Promise.all([
        list(first),
        query(second),
        list(second),
        query(first),
      ]);
      expect(left(await list(first))).toBe(50);
      expect(left(await query(second))).toBe(40);
      for (const call of [list, query, list, query])
        expect((await call(second)).status).toBe(200);
      for (const call of nodes.flatMap((node) => [
        () => list(node),
        () => query(node),
      ])) {
        const refused = await call();
        expect([refused.status, left(refused)]).toEqual([429, 0]);
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      }
    });

    test('is not exceeded by concurrent requests to all nodes and both APIs', async () => {
      const [first] = await startTwoNodes(1000);
      const calls = [list, query].flatMap((call) =>
        nodes.map((node) => () => call(node)),
      );
      const responses: Array<{ status: number }> = [];
      // 40 at once: of more requests a busy Redis may answer some too late, and
      // each node would count those itself.
      for (let wave = 1; wave <= 5; wave += 1) {
        responses.push(
          ...(await Promise.all(
            Array.from({ length: 10 }, () =>
              calls.map((call) => call()),
            ).flat(),
          )),
        );
      }
      const served = responses.filter(({ status }) => status === 200).length;
      // Each costs ten units. The units that refused requests had taken in
      // advance are returned exactly.
      expect(served).toBeGreaterThan(0);
      expect(served).toBeLessThanOrEqual(100);
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(
        200 - served,
      );
      expect(left(await list(first))).toBe(
        Math.max(0, 1000 - 10 * served - 10),
      );
    });

    test.each(['gone', 'silent'])(
      'is counted by each node for itself while Redis is %s, which readiness reports, and shared again afterwards',
      async (how) => {
        const [first, second] = await startTwoNodes(1000);
        expect(left(await list(first))).toBe(990);
        // Requests that are waiting for Redis at that moment are answered, too.
        const { key } = await store.keys.issue({ name: 'another' });
        const waiting = nodes.flatMap((node) =>
          Array.from({ length: 8 }, (_, at) =>
            [list, query][at % 2]?.({ ...node, key }),
          ),
        );
        if (how === 'gone') await redis.kill();
        else redis.pause();
        for (const response of await Promise.all(waiting))
          expect(response?.status).toBe(200);
        for (const node of nodes) {
          const responses = await Promise.all([
            list(node),
            query(node),
            list(node),
            query(node),
          ]);
          expect(responses.map(({ status }) => status)).toEqual([
            200, 200, 200, 200,
          ]);
          expect([left(await list(node)), left(await query(node))]).toEqual([
            950, 940,
          ]);
          expect(await readiness(node)).toEqual(perNode);
        }
        // Another node can start, serve and close.
        await onNode(store, env(1000), async (node) => {
          expect([left(await list(node)), left(await query(node))]).toEqual([
            990, 980,
          ]);
          expect(await readiness(node)).toEqual(perNode);
        });
        if (how === 'gone') await redis.start();
        else redis.resume();
        for (const node of nodes) await eventually(() => isShared(node));
        const together = left(await list(first));
        expect([left(await query(second)), left(await list(second))]).toEqual([
          together - 10,
          together - 20,
        ]);
      },
    );

    test('is counted in the new master when the address leads from a former one to it', async () => {
      const master = await createRedis();
      await master.start();
      const proxy = new TcpProxy(new URL(redis.url));
      await proxy.open();
      try {
        const moved = { ...env(1000), REDIS_URL: proxy.url };
        await onNode(store, moved, async (node) => {
          await eventually(() => isShared(node));
          expect(left(await list(node))).toBe(990);
          await redis.command('replicaof', '127.0.0.1', '1');
          // Connections stay.
          proxy.target = new URL(master.url);
          await list(node);
          await eventually(() => isShared(node));
          await onNode(
            store,
            { ...env(1000), REDIS_URL: master.url },
            async (other) => {
              await eventually(() => isShared(other));
              const first = left(await list(node));
              expect(left(await list(other))).toBe(first - 10);
            },
          );
        });
      } finally {
        proxy.cut();
        await master.kill();
      }
    });

    test('is counted by each node while Redis is a replica', async () => {
      const [first] = await startTwoNodes(1000);
      await redis.command('replicaof', '127.0.0.1', '1');
      expect(left(await list(first))).toBe(990);
      expect(await readiness(first)).toEqual(perNode);
      await redis.command('replicaof', 'no', 'one');
      await eventually(() => isShared(first));
    });

    test('needs no second command to a silent Redis, not even for fifty fields in a query', async () => {
      let commands = 0;
      const proxy = new TcpProxy(new URL(redis.url), (bytes) => {
        commands +=
          bytes.toString('latin1').match(/\beval(?:sha)?\b/gi)?.length ?? 0;
      });
      await proxy.open();
      await onNode(
        store,
        { ...env(1000), REDIS_URL: proxy.url },
        async (node) => {
          await eventually(() => isShared(node));
          expect(left(await list(node))).toBe(990);
          redis.pause();
          const before = commands;
          const fifty = Array.from(
            { length: 50 },
            (_, at) => `a${at}: pet(id: 999) { id }`,
          ).join(' ');
          const response = await graphqlText(node, { query: `{ ${fifty} }` });
          expect([response.status, response.errors, left(response)]).toEqual([
            200,
            undefined,
            950,
          ]);
          for (let at = 1; at <= 20; at += 1)
            expect(left(await rest(node, '/v1/pets/999'))).toBe(950 - at);
          expect(commands).toBe(before + 1);
        },
      ).finally(() => proxy.cut());
    });
  },
);

describe('a Redis whose responses are no counts', () => {
  test.each([
    ['texts', '$1\r\na\r\n$1\r\nb\r\n'],
    ['counts beyond every number', ':9007199254740993\r\n:60000\r\n'],
  ])(
    '(%s) counts as failed: the node counts for itself, and readiness reports it',
    async (_what, values) => {
      // Answers the first commands of a client, and every count with the two
      // values.
      const fakeRedis = createServer((socket) => {
        socket
          .on('error', () => undefined)
          .on('data', (data) => {
            for (const [, name = ''] of data
              .toString('latin1')
              .matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
              if (/^eval/i.test(name)) socket.write(`*2\r\n${values}`);
              else
                socket.write(
                  /^info$/i.test(name)
                    ? '$21\r\nredis_version:7.0.0\r\n\r\n'
                    : '+OK\r\n',
                );
            }
          });
      });
      await once(fakeRedis.listen(0, '127.0.0.1'), 'listening');
      const { port } = fakeRedis.address() as AddressInfo;
      const env = {
        QUOTA_PER_MINUTE: '100',
        REDIS_URL: `redis://127.0.0.1:${port}`,
      };
      await onNode(store, env, async (node) => {
        for (const remaining of [99, 98]) {
          const response = await rest(node, '/v1/pets/999');
          expect([response.status, left(response)]).toEqual([404, remaining]);
        }
        expect(await readiness(node)).toEqual(perNode);
      });
      fakeRedis.close();
    },
  );
});
