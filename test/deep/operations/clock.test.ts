import { createSecret } from '../../../src/access/keys/secret.ts';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

const store = storeForAll();
const { now } = Date;
afterEach(() => {
  Date.now = now;
});

test.each([
  ['gives a key more than its quota, nor keeps it waiting', 'QUOTA_PER_MINUTE', 200, () => store.key],
  ['lets an address guess on, nor shuts it out', 'AUTH_FAILURES_PER_MINUTE', 401, createSecret],
])('a clock that is set back neither %s for longer than a minute', async (_what, limit, usual, secret) => {
  await onNode(store, { [limit]: '3' }, async ({ origin }) => {
    const ask = () => send(origin, { path: '/v1/pets', headers: { authorization: `Bearer ${secret()}` } });
    for (let time = 1; time <= 3; time += 1) expect((await ask()).status).toBe(usual);
    // As the system does when it corrects it: the clock of the day, and nothing else.
    Date.now = () => now() - 3_600_000;
    const { status, headers } = await ask();
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    if (usual === 200) expect(headers.ratelimit).toMatch(/^"key";r=0;t=(?:[1-5]?\d|60)$/);
  });
});
