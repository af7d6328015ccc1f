import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { nodeForAll, storeForAll } from '../../support/store.ts';

/** A process that is busier than its core says so to its clients, instead of letting new ones wait. */

const store = storeForAll();
const node = nodeForAll(store, { MAX_CONNECTIONS: '100', EVENT_LOOP_MAX_DELAY_MS: '100' });

const ask = (path: string) => send(node.origin, { path, headers: { authorization: `Bearer ${store.key}` } });

/** Makes every turn of the event loop long, until it is told to end. */
function fillEventLoop(): () => void {
  let isOver = false;
  const turn = () => {
    const end = performance.now() + 150;
    while (performance.now() < end);
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOver = true;
  };
}

test('while the event loop is full, new work is refused with 503, health checks answer, and then it is over', async () => {
  const message = 'The service is overloaded; try again shortly.';
  const end = fillEventLoop();
  try {
    await eventually(async () => (await ask('/v1/pets')).status === 503);
    const rest = await ask('/v1/pets');
    expect(JSON.parse(rest.text)).toEqual({ code: 'SERVICE_UNAVAILABLE', message, status: 503 });
    expect(rest.headers).toMatchObject({ 'retry-after': '1', connection: 'close' });
    const graphql = await ask('/graphql?query={pets{id}}');
    expect([graphql.status, JSON.parse(graphql.text)]).toEqual([
      503,
      { errors: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE', status: 503, retryAfter: 1 } }] },
    ]);
    for (const path of ['/livez', '/readyz']) expect((await ask(path)).status).toBe(200);
    expect(node.app.shedRequests).toBeGreaterThanOrEqual(3);
  } finally {
    end();
  }
  await eventually(async () => (await ask('/v1/pets')).status === 200);
});

test('one long pause is not taken for load', async () => {
  const end = performance.now() + 1500;
  while (performance.now() < end);
  for (let call = 0; call < 5; call += 1) expect((await ask('/v1/pets')).status).toBe(200);
});
