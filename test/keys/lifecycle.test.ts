import { createHash } from 'node:crypto';
import type { IssuedKey, NewKey } from '#engine/access/keys/api-key.service.js';
import { Authenticator } from '#engine/access/keys/authenticator.js';
import { createSecret, hashSecret } from '#engine/access/keys/secret.js';
import { Call } from '#engine/call.js';
import { Unavailable } from '#engine/errors.js';
import { apis } from '../support/apis.ts';
import { readsOf, sql } from '../support/database-access.ts';
import { describe, expect, test } from '../support/jest.ts';
import { exchange } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';
import { withClock } from '../support/wrong-keys.ts';

const store = storeForAll();

const refused = {
  code: 'UNAUTHENTICATED',
  status: 401,
  message: 'The API key is not valid.',
};
const accepted = { data: [] };
const endNow =
  "update api_key set expires_at = now() - interval '1 minute' where id = $1";

/** In ms: a node believes its last look-up of a key for 0.9 seconds. */
const looksAgainAfter = 1000;

const lookUpIn = (authenticator: Authenticator, key: string) =>
  authenticator.lookUp(key, '127.0.0.1', new Call(), hashSecret(key));

const issue = (newKey: Partial<NewKey> = {}): Promise<IssuedKey> =>
  store.keys.issue({ name: 'shop', ...newKey });

test('a secret is random, and the database has only its SHA-256 and eight of its characters', async () => {
  const { id, key } = await issue();
  const { key: second } = await store.keys.rotate(id, 60_000);
  const everything = JSON.stringify(
    await sql(store.database, 'select row_to_json(api_key)::text from api_key'),
  );
  for (const secret of [key, second]) {
    expect(everything).toContain(
      createHash('sha256').update(secret).digest('hex'),
    );
    for (let at = 0; at + 12 <= secret.length; at += 1)
      expect(everything).not.toContain(secret.slice(at, at + 12));
  }
  expect(
    new Set(Array.from({ length: 20 }, () => createSecret().slice(4, 24))).size,
  ).toBe(20);
});

test('a connection is admitted by the key of each request, not by an earlier one', async () => {
  const { key } = await issue();
  const statusesWith = async (...keys: string[]) => {
    const requests = keys.map(
      (one) =>
        `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${one}\r\n\r\n`,
    );
    const last =
      'GET /v1/pets HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n';
    const responses = await exchange(store, requests.join('') + last);
    return responses.map(({ status }) => status);
  };
  const wrong = createSecret();
  expect(await statusesWith(key, key, wrong, wrong, key)).toEqual([
    200, 200, 401, 401, 200, 401,
  ]);
  expect(await statusesWith(wrong, `${key}A`, key)).toEqual([
    401, 401, 200, 401,
  ]);
});

describe.each(apis)('through $name', (api) => {
  test('a revoked key is refused on every node that knew it, and keeps the time of its first revocation', async () => {
    const { id, key } = await issue();
    await onNode(store, {}, async (node) => {
      const nodes = [store, { ...store, ...node }];
      const { revokedAt } = await withClock(async (setTo) => {
        for (const one of nodes)
          expect(await api.list(one, {}, key)).toEqual(accepted);
        const revoked = await store.keys.revoke(id);
        setTo(looksAgainAfter);
        for (const one of nodes)
          expect(await api.list(one, {}, key)).toEqual(refused);
        return revoked;
      });
      expect((await store.keys.revoke(id)).revokedAt).toEqual(revokedAt);
    });
  });

  test('an expired key is refused by a node that knew it and by one that did not', async () => {
    const { id, key } = await issue({ expiresAt: new Date('2099-01-01') });
    await withClock(async (setTo) => {
      expect(await api.list(store, {}, key)).toEqual(accepted);
      await sql(store.database, endNow, [id]);
      await onNode(store, {}, async (node) =>
        expect(await api.list({ ...store, ...node }, {}, key)).toEqual(refused),
      );
      setTo(looksAgainAfter);
      expect(await api.list(store, {}, key)).toEqual(refused);
    });
  });

  test('a key expires by the clock of the database', async () => {
    const { id, key } = await issue();
    await sql(store.database, endNow, [id]);
    await withClock(async (setTo) => {
      setTo(-3_600_000);
      await onNode(store, {}, async (node) =>
        expect(await api.list({ ...store, ...node }, {}, key)).toEqual(refused),
      );
    });
  });

  test('the last use is recorded without a write for every request', async () => {
    const { id, key } = await issue();
    const lastUse = async () =>
      (await store.keys.list()).find((one) => one.id === id)?.lastUsedAt;
    await onNode(store, {}, async (node) => {
      for (let call = 0; call < 5; call += 1)
        await api.list({ ...store, ...node }, {}, key);
      expect(await lastUse()).toBeNull();
    });
    expect(await lastUse()).toBeInstanceOf(Date);
  });
});

test('a key that a node knows stays valid when the node corrects its clock', () =>
  withClock(async () => {
    const authenticator = new Authenticator(store.database, {});
    const { key } = await issue({ expiresAt: new Date(Date.now() + 60_000) });
    const lookUp = () => lookUpIn(authenticator, key);
    expect(await lookUp()).toMatchObject({ name: 'shop' });
    const corrected = Date.now() + 3_600_000;
    Date.now = () => corrected;
    expect(await lookUp()).toMatchObject({ name: 'shop' });
  }));

test('a node refuses a key that it knows from its expiry on, without a look-up', () =>
  withClock(async (setTo) => {
    const authenticator = new Authenticator(store.database, {});
    const { key } = await issue({ expiresAt: new Date(Date.now() + 500) });
    const lookUp = () => lookUpIn(authenticator, key);
    expect(await lookUp()).toMatchObject({ name: 'shop' });
    setTo(500);
    expect(lookUp()).toBeNull();
  }));

test('a hundred parallel requests with two keys share one look-up', async () => {
  const { keys } = store;
  const authenticator = new Authenticator(store.database, {});
  const secrets = [
    (await keys.issue({ name: 'a' })).key,
    (await keys.issue({ name: 'b' })).key,
  ];
  const count = await readsOf('api_key', store.database, async () => {
    const callers = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        lookUpIn(authenticator, secrets[at % 2] ?? ''),
      ),
    );
    expect(new Set(callers.map((caller) => caller?.name))).toEqual(
      new Set(['a', 'b']),
    );
  });
  expect(count).toBe(1);
});

test('a key is looked up again after 0.9 seconds, and not before; setting the clock has no effect', () =>
  withClock(async (setTo) => {
    const { key } = await store.keys.issue({ name: 'timed' });
    const authenticator = new Authenticator(store.database, {});
    const lookupsAt = async (offset: number, jump = 0) => {
      setTo(offset);
      const day = Date.now() + jump;
      Date.now = () => day;
      return readsOf('api_key', store.database, async () =>
        lookUpIn(authenticator, key),
      );
    };
    expect(await lookupsAt(0)).toBe(1);
    expect(await lookupsAt(899)).toBe(0);
    expect(await lookupsAt(901)).toBe(1);
    expect(await lookupsAt(1800)).toBe(0);
    // By the wall clock, a second back would trust it a second longer, an hour
    // forward would look up each request.
    expect(await lookupsAt(1800, -1000)).toBe(0);
    expect(await lookupsAt(1802, -1000)).toBe(1);
    expect(await lookupsAt(2600, 3_600_000)).toBe(0);
  }));

test('a database that cannot be reached is 503, not 401', async () => {
  const { rows } = store.database;
  const { key } = await store.keys.issue({ name: 'unlucky' });
  store.database.rows = async () => {
    throw new Unavailable('gone');
  };
  try {
    for (const api of apis)
      expect(await api.list(store, {}, key)).toMatchObject({ status: 503 });
  } finally {
    store.database.rows = rows;
  }
});

const hour = 3_600_000;

/** @returns which keys a node accepts that has never seen them */
const areAccepted = (...keys: string[]): Promise<boolean[]> =>
  onNode(store, {}, (node) =>
    Promise.all(
      keys.map(
        async (key) => (await rest(node, '/v1/pets', { key })).status === 200,
      ),
    ),
  );

describe('rotating a key', () => {
  test('keeps its id, name, scope and expiry; both secrets are valid in the overlap, only the new one after it', async () => {
    const expiresAt = new Date('2099-01-01');
    const old = await issue({ scope: 'read', expiresAt });
    // A node that knows the old secret accepts both, too.
    expect((await rest(store, '/v1/pets', { key: old.key })).status).toBe(200);
    const rotated = await store.keys.rotate(old.id, hour);
    for (const key of [old.key, rotated.key])
      expect((await rest(store, '/v1/pets', { key })).status).toBe(200);
    const shop = { id: old.id, name: 'shop', scope: 'read', expiresAt };
    expect(rotated).toEqual({
      ...shop,
      key: expect.any(String),
      previousExpiresAt: expect.any(Date),
    });
    expect(rotated.key).not.toBe(old.key);
    expect(await areAccepted(old.key, rotated.key)).toEqual([true, true]);
    await sql(
      store.database,
      "update api_key set previous_expires_at = now() - interval '1 second'",
    );
    expect(await areAccepted(old.key, rotated.key)).toEqual([false, true]);
    await withClock(async (setTo) => {
      setTo(looksAgainAfter);
      expect((await rest(store, '/v1/pets', { key: old.key })).status).toBe(
        401,
      );
      expect((await rest(store, '/v1/pets', { key: rotated.key })).status).toBe(
        200,
      );
    });
  });

  test('leaves the last two secrets valid; without an overlap it refuses the old one at once', async () => {
    const first = await issue();
    const second = await store.keys.rotate(first.id, hour);
    const third = await store.keys.rotate(first.id, hour);
    expect(await areAccepted(first.key, second.key, third.key)).toEqual([
      false,
      true,
      true,
    ]);
    const fourth = await store.keys.rotate(first.id, 0);
    expect(await areAccepted(third.key, fourth.key)).toEqual([false, true]);
  });

  test.each([
    ['is revoked.', (id: number) => store.keys.revoke(id)],
    [
      'has expired; issue a new one.',
      (id: number) => sql(store.database, endNow, [id]),
    ],
  ])('does not revive it once it %s', async (why, end) => {
    const old = await issue({ expiresAt: new Date('2099-01-01') });
    const rotated = await store.keys.rotate(old.id, hour);
    await end(old.id);
    expect(await areAccepted(old.key, rotated.key)).toEqual([false, false]);
    const row = () =>
      sql(
        store.database,
        'select row_to_json(api_key) from api_key where id = $1',
        [old.id],
      );
    const before = await row();
    const message = `The key ${old.id} ${why}`;
    await expect(store.keys.rotate(old.id, hour)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message,
    });
    expect(await row()).toEqual(before);
  });
});
