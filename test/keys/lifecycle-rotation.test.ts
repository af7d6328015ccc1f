import { sql } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

const store = storeForAll();

const hour = 3_600_000;

/** Whether a node that has never seen the key lets it in, by both faces. */
async function isAccepted(key: string): Promise<boolean> {
  return onNode(store, {}, async (node) => {
    const outcomes = [];
    for (const face of faces) outcomes.push('data' in (await face.list({ ...store, ...node }, {}, key)));
    expect(new Set(outcomes).size).toBe(1);
    return outcomes[0] === true;
  });
}

const endOverlap = (id: number) =>
  sql(store.database, "update api_key set previous_expires_at = now() - interval '1 second' where id = $1", [id]);

describe('rotating a key', () => {
  test('keeps its id, name, scope and end; both secrets are valid in the overlap, only the new one after it', async () => {
    const expiresAt = new Date('2099-01-01');
    const old = await store.keys.issue({ name: 'shop', scope: 'read', expiresAt });
    const rotated = await store.keys.rotate(old.id, hour);
    const shop = { id: old.id, name: 'shop', scope: 'read', expiresAt };
    expect(rotated).toEqual({ ...shop, key: expect.any(String), previousExpiresAt: expect.any(Date) });
    expect(rotated.key).not.toBe(old.key);
    expect(await isAccepted(old.key)).toBe(true);
    expect(await isAccepted(rotated.key)).toBe(true);
    await endOverlap(old.id);
    expect(await isAccepted(old.key)).toBe(false);
    expect(await isAccepted(rotated.key)).toBe(true);
  });

  test('without an overlap refuses the old secret at once', async () => {
    const old = await store.keys.issue({ name: 'shop' });
    const rotated = await store.keys.rotate(old.id, 0);
    expect(await isAccepted(old.key)).toBe(false);
    expect(await isAccepted(rotated.key)).toBe(true);
  });

  test('twice leaves the last two secrets valid, and the first no longer', async () => {
    const first = await store.keys.issue({ name: 'shop' });
    const second = await store.keys.rotate(first.id, hour);
    const third = await store.keys.rotate(first.id, hour);
    expect(await isAccepted(first.key)).toBe(false);
    expect(await isAccepted(second.key)).toBe(true);
    expect(await isAccepted(third.key)).toBe(true);
  });

  test('cannot revive a revoked key, and revoking ends both secrets', async () => {
    const old = await store.keys.issue({ name: 'shop' });
    const rotated = await store.keys.rotate(old.id, hour);
    await store.keys.revoke(old.id);
    expect(await isAccepted(old.key)).toBe(false);
    expect(await isAccepted(rotated.key)).toBe(false);
    await expect(store.keys.rotate(old.id, hour)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: `The key ${old.id} is revoked.`,
    });
  });

  test('does not outlive the end of the key: the overlap is longer, the key is not', async () => {
    const old = await store.keys.issue({ name: 'shop', expiresAt: new Date('2099-01-01') });
    const rotated = await store.keys.rotate(old.id, hour);
    await sql(store.database, "update api_key set expires_at = now() - interval '1 second' where id = $1", [old.id]);
    expect(await isAccepted(old.key)).toBe(false);
    expect(await isAccepted(rotated.key)).toBe(false);
  });

  test('is refused for a key that has expired, which stays as it is', async () => {
    const old = await store.keys.issue({ name: 'shop', expiresAt: new Date('2099-01-01') });
    await sql(store.database, "update api_key set expires_at = now() - interval '1 second' where id = $1", [old.id]);
    const row = () => sql(store.database, 'select row_to_json(api_key) from api_key where id = $1', [old.id]);
    const before = await row();
    await expect(store.keys.rotate(old.id, hour)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: `The key ${old.id} has expired; issue a new one.`,
    });
    expect(await row()).toEqual(before);
  });

  test.each(['rotate', 'revoke'] as const)('to %s a key that is not there is NOT_FOUND', async (verb) => {
    await expect(store.keys[verb](999_999, 0)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'There is no key with the id 999999.',
    });
  });

  test('under load fails no request with either secret in the overlap, and afterwards only the old one', async () => {
    const old = await store.keys.issue({ name: 'busy' });
    const statuses: number[] = [];
    let secrets = [old.key];
    let isOver = false;
    const call = async (worker: number) => {
      for (let round = worker; !isOver; round += 1) {
        const key = secrets[round % secrets.length] as string;
        const onGraphQL = round % 3 === 0;
        const { status } = onGraphQL
          ? await graphqlText(store, { query: '{ pets { id } }' }, key)
          : await rest(store, '/v1/pets', { key });
        statuses.push(status);
      }
    };
    const load = Array.from({ length: 16 }, (_, worker) => call(worker));
    await eventually(async () => statuses.length > 100);
    const rotated = await store.keys.rotate(old.id, hour);
    secrets = [old.key, rotated.key];
    const before = statuses.length;
    // Long enough for every look-up from before the rotation to be forgotten.
    const forgotten = Date.now() + 1200;
    await eventually(async () => statuses.length > before + 500 && Date.now() > forgotten);
    isOver = true;
    await Promise.all(load);
    expect(new Set(statuses)).toEqual(new Set([200]));

    await endOverlap(old.id);
    await eventually(async () => (await rest(store, '/v1/pets', { key: old.key })).status === 401);
    for (let round = 0; round < 20; round += 1) {
      expect((await rest(store, '/v1/pets', { key: old.key })).status).toBe(401);
      expect((await rest(store, '/v1/pets', { key: rotated.key })).status).toBe(200);
    }
  });
});
