import { setTimeout } from 'node:timers/promises';
import fastify from 'fastify';
import { parseJsonBodies } from '#engine/api/http/bodies.js';
import { Turns, takeTurns } from '#engine/api/http/turns.js';
import { expect, test } from '../support/jest.ts';

/** In which order the work of callers begins while turns are long. */

/** Uses the processor for longer than a turn. */
function work() {
  const end = performance.now() + 30;
  while (performance.now() < end);
}

/** @param released what requests wait for before their turn */
async function newApp(released?: Promise<void>) {
  const begun: string[] = [];
  const left = new Set<string>();
  const app = fastify();
  app.addHook('onRequest', async (request) => {
    const { caller, number } = request.headers;
    const name = `${caller}${number}`;
    const hasLeft = () => left.has(name);
    const call = {
      caller: { id: caller },
      isWrite: request.method === 'POST',
      restartDeadline: () => undefined,
    };
    Object.defineProperty(call, 'hasLeft', { get: hasLeft });
    request.call = call as never;
    request.route = request.routeOptions;
    await released;
  });
  const turns = new Turns();
  app.decorate('turns', turns);
  takeTurns(app);
  parseJsonBodies(app);
  app.route({
    method: ['GET', 'POST'],
    url: '/',
    handler: async ({ headers: { caller, number } }) => {
      // As GraphQL, it works after a promise.
      await undefined;
      begun.push(`${caller}${number}`);
      work();
      return '';
    },
  });
  await app.ready();
  const send = (name: string, payload?: object) => {
    const [caller = '', number = ''] = name;
    const method = payload ? 'POST' : 'GET';
    const headers = { caller, number };
    return app.inject({ method, url: '/', headers, payload });
  };
  return { begun, left, send, turns };
}

test.each([
  ['without a body', undefined],
  ['with one', { name: 'Rex' }],
])('requests %s of another caller pass costly ones', async (_what, payload) => {
  const { begun, send } = await newApp();
  const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'];
  await Promise.all(names.map((name) => send(name, payload)));
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

test.each([
  ['without a body', undefined],
  ['with one', { name: 'Rex' }],
])(
  'requests %s that waited for one key begin in turn',
  async (_what, payload) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { begun, send } = await newApp(released);
    const names = ['a1', 'a2', 'a3', 'a4', 'b1'];
    const answers = names.map((name) => send(name, payload));
    await setTimeout();
    release();
    await Promise.all(answers);
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  },
);

test('the caller of most long turns is the heaviest, whoever began', async () => {
  const { send, turns } = await newApp();
  for (const name of ['a1', 'b1', 'b2', 'b3']) {
    await send(name);
    await setTimeout();
  }
  expect(turns.takeHeaviest()).toBe('b');
  expect(turns.takeHeaviest()).toBeUndefined();
});

test('the work of a client that has left does not begin', async () => {
  const { begun, left, send } = await newApp();
  const answers = ['a1', 'a2', 'a3'].map((name) => send(name));
  left.add('a2');
  await Promise.all([answers[0], answers[2]]);
  await setTimeout();
  expect(begun).toEqual(['a1', 'a3']);
});
