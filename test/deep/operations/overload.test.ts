import { once } from 'node:events';
import { connect } from 'node:net';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { nodeForAll, storeForAll } from '../../support/store.ts';

/**
 * A process that is busier than its core: which requests it refuses, and in
 * which order it serves.
 */

const store = storeForAll();
const node = nodeForAll(store, {
  MAX_CONNECTIONS: '500',
  EVENT_LOOP_MAX_DELAY_MS: '100',
});

const get = (path: string) =>
  send(node.origin, {
    path,
    headers: { authorization: `Bearer ${store.key}` },
  });

/** Uses the processor. */
function work(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** Blocks without using the processor, as if other programs had it. */
function stall(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/**
 * Makes every turn of the event loop long. @returns a function that ends that
 */
function fillEventLoop(
  block: (milliseconds: number) => void = work,
): () => void {
  let isOver = false;
  const turn = () => {
    block(150);
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOver = true;
  };
}

/**
 * Makes this thread appear to have had its core all the time, because machines
 * that run tests are busy.
 */
function claimCore(): () => void {
  const { threadCpuUsage } = process;
  process.threadCpuUsage = (before) => ({
    user: performance.now() * 1000 - (before?.user ?? 0),
    system: 0,
  });
  return () => {
    process.threadCpuUsage = threadCpuUsage;
  };
}

test('while the event loop is full new work is refused with 503 and health checks answer; afterwards the service works again', async () => {
  const message = 'The service is overloaded; try again shortly.';
  const release = claimCore();
  const end = fillEventLoop();
  try {
    await eventually(async () => (await get('/v1/pets')).status === 503);
    const rest = await get('/v1/pets');
    expect(JSON.parse(rest.text)).toEqual({
      code: 'SERVICE_UNAVAILABLE',
      message,
      status: 503,
    });
    expect(rest.headers).toMatchObject({
      'retry-after': '1',
      connection: 'close',
    });
    const graphql = await get('/graphql?query={pets{id}}');
    expect([graphql.status, JSON.parse(graphql.text)]).toEqual([
      503,
      {
        errors: [
          {
            message,
            extensions: {
              code: 'SERVICE_UNAVAILABLE',
              status: 503,
              retryAfter: 1,
            },
          },
        ],
      },
    ]);
    for (const path of ['/livez', '/readyz'])
      expect((await get(path)).status).toBe(200);
    expect(node.app.shedRequests).toBeGreaterThanOrEqual(3);
  } finally {
    end();
    release();
  }
  await eventually(async () => (await get('/v1/pets')).status === 200);
});

test('while the work of one key fills the event loop, another key is served', async () => {
  const release = claimCore();
  const costly = { call: { caller: { id: -5 }, hasLeft: false } };
  const end = fillEventLoop(() =>
    node.app.turns.take(costly as never, () => work(150)),
  );
  try {
    const until = performance.now() + 4000;
    while (performance.now() < until)
      expect((await get('/v1/pets')).status).toBe(200);
  } finally {
    end();
    release();
  }
});

test('long turns in which other programs use the processor are no overload', async () => {
  const shedBefore = node.app.shedRequests;
  const end = fillEventLoop(stall);
  try {
    // Longer than two checks of the event loop.
    for (let call = 0; call < 20; call += 1)
      expect((await get('/v1/pets')).status).toBe(200);
  } finally {
    end();
  }
  expect(node.app.shedRequests).toBe(shedBefore);
});

test('one long pause does not count as overload', async () => {
  work(1500);
  for (let call = 0; call < 5; call += 1)
    expect((await get('/v1/pets')).status).toBe(200);
});

test('while connections queue, requests wait until they are accepted', async () => {
  let accepted = 0;
  node.app.server.on('connection', () => {
    accepted += 1;
  });
  const open = () => connect(Number(new URL(node.origin).port), '127.0.0.1');
  const older = open();
  /** @returns how many connections were accepted until the response */
  const acceptedMeanwhile = async () => {
    const before = accepted;
    older.write('GET /v1/pets HTTP/1.1\r\nHost: store.example\r\n\r\n');
    await once(older, 'data');
    return accepted - before;
  };
  await acceptedMeanwhile();
  // A turn accepts one connection, and takes a millisecond.
  const end = fillEventLoop(() => work(1));
  const newer = Array.from({ length: 400 }, open);
  let most = 0;
  try {
    while (accepted < newer.length)
      most = Math.max(most, await acceptedMeanwhile());
  } finally {
    end();
    for (const socket of [older, ...newer]) socket.destroy();
  }
  // Without a queue the response takes two or three turns.
  expect(most).toBeGreaterThan(20);
});
