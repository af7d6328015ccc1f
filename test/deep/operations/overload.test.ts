import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { nodeForAll, storeForAll } from '../../support/store.ts';

/** A process with a full event loop refuses new requests instead of delaying them. */

const store = storeForAll();
const node = nodeForAll(store, { MAX_CONNECTIONS: '100', EVENT_LOOP_MAX_DELAY_MS: '100' });

const get = (path: string) => send(node.origin, { path, headers: { authorization: `Bearer ${store.key}` } });

/** Makes every turn of the event loop long. @returns a function that ends that */
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

test('while the event loop is full new work is refused with 503 and health checks answer; afterwards the service works again', async () => {
  const message = 'The service is overloaded; try again shortly.';
  const end = fillEventLoop();
  try {
    await eventually(async () => (await get('/v1/pets')).status === 503);
    const rest = await get('/v1/pets');
    expect(JSON.parse(rest.text)).toEqual({ code: 'SERVICE_UNAVAILABLE', message, status: 503 });
    expect(rest.headers).toMatchObject({ 'retry-after': '1', connection: 'close' });
    const graphql = await get('/graphql?query={pets{id}}');
    expect([graphql.status, JSON.parse(graphql.text)]).toEqual([
      503,
      { errors: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE', status: 503, retryAfter: 1 } }] },
    ]);
    for (const path of ['/livez', '/readyz']) expect((await get(path)).status).toBe(200);
    expect(node.app.shedRequests).toBeGreaterThanOrEqual(3);
  } finally {
    end();
  }
  await eventually(async () => (await get('/v1/pets')).status === 200);
});

test('one long pause does not count as overload', async () => {
  const end = performance.now() + 1500;
  while (performance.now() < end);
  for (let call = 0; call < 5; call += 1) expect((await get('/v1/pets')).status).toBe(200);
});
