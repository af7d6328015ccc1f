import { createSecret } from '../../../src/access/keys/secret.ts';
import { type HttpResponse, send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { onNode } from '../../support/nodes.ts';
import { storeForAll } from '../../support/store.ts';

/** Guessing keys: nothing tells a near miss from a far one, and there are few tries. */
let revoked: string;
let expired: string;
const store = storeForAll({}, async () => {
  const gone = await store.keys.issue({ name: 'revoked' });
  await store.keys.revoke(gone.id);
  revoked = gone.key;
  expired = (await store.keys.issue({ name: 'expired', expiresAt: new Date(1) })).key;
});

const request = (authorization: string, path = '/v1/pets') => send(store.origin, { path, headers: { authorization } });

/** All that a response tells, without what differs in any two. */
function told({ status, text, headers }: HttpResponse) {
  const { date, 'x-request-id': id, ...others } = headers;
  return { status, text, others };
}

test('a wrong key, a mistyped, an expired and a revoked one are answered alike, byte for byte', async () => {
  const answers = [];
  for (const key of [
    'x',
    'wrong',
    createSecret(),
    revoked,
    expired,
    `${store.key}x`,
    store.key.slice(0, -1),
    store.key.toLowerCase(),
  ]) {
    answers.push(told(await request(`Bearer ${key}`)));
  }
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  expect(answers[0]).toMatchObject({
    status: 401,
    text: '{"code":"UNAUTHENTICATED","message":"The API key is not valid.","status":401}',
    others: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
});

test.each(['', 'Bearer', 'Bearer ', 'Basic YTpi', 'Token x', 'Digest username="a"', 'bearer'])(
  'the header %j is no key: 401 with a plain challenge',
  async (authorization) => {
    const { status, headers } = await request(authorization);
    expect({ status, challenge: headers['www-authenticate'] }).toEqual({ status: 401, challenge: 'Bearer' });
  },
);

test.each([
  ['/v1/pets?api_key=', 'query'],
  ['/v1/pets?access_token=', 'query'],
  ['/v1/pets?key=', 'query'],
])('a key in the address (%s) is none', async (path) => {
  expect((await send(store.origin, { path: `${path}${store.key}` })).status).toBe(401);
});

test.each(['x-api-key', 'api-key', 'apikey', 'x-auth-token', 'x-access-token'])(
  'a key in the header %s is none',
  async (name) => {
    expect((await send(store.origin, { path: '/v1/pets', headers: { [name]: store.key } })).status).toBe(401);
  },
);

test('unknown paths, methods and bodies tell nothing but 401', async () => {
  const answers = new Set<string>();
  for (const [method, path] of [
    ['GET', '/v1/pets'],
    ['DELETE', '/v1/pets'],
    ['GET', '/v1/nothing'],
    ['POST', '/v1/pets'],
    ['GET', '/v1/store/orders'],
    ['PUT', '/admin'],
  ] as const) {
    const { status, text } = await send(store.origin, { method, path, headers: { authorization: 'Bearer wrong' } });
    answers.add(`${status} ${text}`);
  }
  expect(answers.size).toBe(1);
});

test('out of a thousand guesses at most the allowed ones are judged', async () => {
  await onNode(store, { AUTH_FAILURES_PER_MINUTE: '20' }, async ({ origin }) => {
    const statuses: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const guesses = Array.from({ length: 20 }, () =>
        send(origin, { path: '/v1/pets', headers: { authorization: `Bearer ${createSecret()}` } }),
      );
      for (const { status } of await Promise.all(guesses)) statuses.push(status);
    }
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    // Those that were under way together when the limit was reached count, too.
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(40);
    expect(new Set(statuses.slice(40))).toEqual(new Set([429]));
  });
});
