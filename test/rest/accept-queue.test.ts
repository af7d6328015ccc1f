import { mock } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import fastify from 'fastify';
import { acceptConnectionsFirst } from '#engine/api/http/overload.js';
import { afterEach, expect, test } from '../support/jest.ts';

/** Whether requests wait while clients connect. */

afterEach(() => mock.restoreAll());
/**
 * How busy the event loop is said to be, because the machine decides how busy
 * it is.
 */
const beBusy = (utilization: number) =>
  mock.method(performance, 'eventLoopUtilization', () => ({
    utilization,
    active: 0,
    idle: 0,
  }));

async function newApp() {
  const app = fastify();
  // Node's own listener needs a socket.
  app.server.removeAllListeners('connection');
  acceptConnectionsFirst(app);
  app.get('/', async () => 'answered');
  const connect = () => app.server.emit('connection');
  /**
   * True for a request that has no answer after many turns of the event loop
   * without a timer.
   */
  const waits = async () => {
    let isAnswered = false;
    const answer = app.inject('/').then(({ body }) => {
      isAnswered = true;
      return body;
    });
    for (let turn = 0; turn < 200 && !isAnswered; turn += 1)
      await setImmediate();
    return { isWaiting: !isAnswered, answer };
  };
  await app.ready();
  return { connect, waits };
}

test('requests do not wait for clients that connect one by one', async () => {
  beBusy(0.2);
  const { connect, waits } = await newApp();
  const connecting = setInterval(connect, 5);
  await setTimeout(450);
  for (let at = 0; at < 40; at += 1) {
    expect((await waits()).isWaiting).toBe(false);
    await setTimeout(10);
  }
  clearInterval(connecting);
});

test('requests wait while connections queue, and are answered after them', async () => {
  beBusy(1);
  const { connect, waits } = await newApp();
  let isQueued = true;
  const accepting = (async () => {
    while (isQueued) {
      connect();
      await setImmediate();
    }
  })();
  let request = await waits();
  while (!request.isWaiting) request = await waits();
  isQueued = false;
  await accepting;
  expect(await request.answer).toBe('answered');
});
