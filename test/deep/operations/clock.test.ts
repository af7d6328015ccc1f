import { createSecret } from '../../../src/access/keys/secret.ts';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { onNode, type ServiceNode, storeForAll } from '../../support/store.ts';

const store = storeForAll();
const { now } = Date;
afterEach(() => {
  Date.now = now;
});

/** Sets the clock of the day, and nothing else: as the system does when it corrects it. */
function setClock(milliseconds: number): void {
  Date.now = () => now() + milliseconds;
}

const hour = 3_600_000;

function ask({ origin }: ServiceNode, key: string) {
  return send(origin, { path: '/v1/pets', headers: { authorization: `Bearer ${key}` } });
}

test('a clock that is set back neither gives a key more than its quota nor keeps it waiting for longer than a minute', async () => {
  await onNode(store, { QUOTA_PER_MINUTE: '3' }, async (node) => {
    for (let time = 1; time <= 3; time += 1) expect((await ask(node, store.key)).status).toBe(200);
    setClock(-hour);
    const { status, headers } = await ask(node, store.key);
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(headers.ratelimit).toMatch(/^"key";r=0;t=(?:[1-5]?\d|60)$/);
  });
});

test('nor does it shut out an address for longer than a minute', async () => {
  await onNode(store, { AUTH_FAILURES_PER_MINUTE: '3' }, async (node) => {
    for (let time = 1; time <= 3; time += 1) expect((await ask(node, createSecret())).status).toBe(401);
    setClock(-hour);
    const { status, headers } = await ask(node, createSecret());
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
  });
});

test('whatever the clock is set to, what is asked is answered', async () => {
  await onNode(store, {}, async (node) => {
    for (const jump of [hour, -hour, 365 * 24 * hour, -365 * 24 * hour, 0]) {
      setClock(jump);
      expect((await ask(node, store.key)).status).toBe(200);
      expect((await send(node.origin, { path: '/readyz' })).status).toBe(200);
    }
  });
});
