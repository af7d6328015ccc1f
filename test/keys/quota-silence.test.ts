import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode, startNode } from '../support/nodes.ts';
import { eventually } from '../support/process.ts';
import { createRedis, hasRedis, RoadToRedis, type TestRedis } from '../support/redis.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

const describeWithRedis = hasRedis ? describe : describe.skip;

describeWithRedis('a Redis that falls silent (skipped where no redis-server is installed)', () => {
  let store: Store;
  let redis: TestRedis;
  let nodes: [ServiceNode, ServiceNode];
  const env = () => ({ QUOTA_PER_MINUTE: '1000', REDIS_URL: redis.url });
  beforeAll(async () => {
    store = await startStore();
    await stock(store.database, 9);
  });
  beforeEach(async () => {
    redis = await createRedis();
    await redis.start();
    nodes = [await startNode(store, env()), await startNode(store, env())];
    for (const node of nodes) await eventually(() => isShared(node));
  });
  afterEach(async () => {
    for (const node of nodes) await node.close();
    await redis.kill();
  });
  afterAll(() => store.close());

  const ready = ({ origin }: ServiceNode) => send(origin, { path: '/readyz' });
  const isShared = async (node: ServiceNode) => (await ready(node)).text === '{"status":"ok"}';
  const isPerNode = async (node: ServiceNode) => (await ready(node)).text.includes('per node');
  const left = ({ headers }: HttpResponse) => Number(/r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);
  const list = (node: ServiceNode) => rest(node, '/v1/pets');
  const query = (node: ServiceNode) => graphqlText(node, { query: '{ pets { id } }' });

  test('keeps no request waiting: each node counts for itself, which readiness tells, until it answers again', async () => {
    const [one, two] = nodes;
    expect(left(await list(one))).toBe(990);
    redis.pause();
    for (const node of nodes) {
      const answers = await Promise.all([list(node), query(node), list(node), query(node)]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(left(await list(node))).toBe(950);
      expect(left(await query(node))).toBe(940);
      const { status, text } = await ready(node);
      expect({ status, body: JSON.parse(text) }).toEqual({
        status: 200,
        body: { status: 'ok', quotas: 'per node: Redis cannot be used' },
      });
    }
    redis.resume();
    for (const node of nodes) await eventually(() => isShared(node));
    const together = left(await list(one));
    expect(left(await query(two))).toBe(together - 10);
    expect(left(await list(two))).toBe(together - 20);
  });

  test('under load: what waits for it is answered, and afterwards it is one quota for all again', async () => {
    const statuses = new Set<number>();
    let isOver = false;
    const load = Array.from({ length: 16 }, async (_, at) => {
      const node = nodes[at % 2] as ServiceNode;
      while (!isOver) statuses.add((await (at % 4 < 2 ? rest(node, '/v1/pets/999') : query(node))).status);
    });
    redis.pause();
    for (const node of nodes) await eventually(() => isPerNode(node));
    redis.resume();
    for (const node of nodes) await eventually(() => isShared(node));
    isOver = true;
    await Promise.all(load);
    for (const status of statuses) expect([200, 404, 429]).toContain(status);
  });

  test('does not keep a service from starting, serving and closing', async () => {
    redis.pause();
    await onNode(store, env(), async (node) => {
      expect(left(await list(node))).toBe(990);
      expect(left(await query(node))).toBe(980);
      expect(await isPerNode(node)).toBe(true);
    });
  });

  test('is asked by no request once it is left, not even by fifty operations in one', async () => {
    const road = new RoadToRedis(redis.url);
    await road.open();
    try {
      await onNode(store, { ...env(), REDIS_URL: road.url }, async (node) => {
        await eventually(() => isShared(node));
        expect(left(await list(node))).toBe(990);
        redis.pause();
        const before = road.commands;
        const fifty = Array.from({ length: 50 }, (_, at) => `a${at}: pet(id: 999) { id }`).join(' ');
        const answer = await graphqlText(node, { query: `{ ${fifty} }` });
        expect([answer.status, answer.errors, left(answer)]).toEqual([200, undefined, 950]);
        for (let at = 1; at <= 20; at += 1) expect(left(await rest(node, '/v1/pets/999'))).toBe(950 - at);
        expect(road.commands).toBe(before + 1);
      });
    } finally {
      road.close();
    }
  });
});
