import { createHash } from 'node:crypto';
import type { IssuedKey, NewKey } from '../../src/access/keys/api-key.service.ts';
import { Authenticator } from '../../src/access/keys/authenticator.ts';
import { sql } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { onNode, storeForAll } from '../support/store.ts';

const store = storeForAll();

const refused = { code: 'UNAUTHENTICATED', status: 401, message: 'The API key is not valid.' };
const accepted = { data: [] };

const issue = (newKey: Partial<NewKey> = {}): Promise<IssuedKey> => store.keys.issue({ name: 'shop', ...newKey });
const listed = async (id: number) => (await store.keys.list()).find((key) => key.id === id);

describe('a key that is issued', () => {
  test.each([
    [{}, { scope: 'write', expiresAt: null }],
    [{ scope: 'read' }, { scope: 'read', expiresAt: null }],
    [{ scope: 'write' }, { scope: 'write', expiresAt: null }],
    [{ expiresAt: new Date('2099-01-31T12:00:00Z') }, { scope: 'write', expiresAt: new Date('2099-01-31T12:00:00Z') }],
  ] as const)('as %j is %j, and its secret has the recognisable form', async (wish, got) => {
    const issued = await issue(wish);
    expect(issued).toEqual({ id: expect.any(Number), name: 'shop', key: expect.any(String), ...got });
    expect(issued.key).toMatch(/^ask_[0-9A-Za-z]{49}$/);
    for (const face of faces) expect(await face.list(store, {}, issued.key)).toEqual(accepted);
  });

  test('is listed by a hint and everything but its secret', async () => {
    const { id, key } = await issue({ scope: 'read', expiresAt: new Date('2099-01-01') });
    const inList = await listed(id);
    expect({ ...inList }).toMatchObject({
      id,
      name: 'shop',
      scope: 'read',
      hint: key.slice(0, 8),
      createdAt: expect.any(Date),
      expiresAt: new Date('2099-01-01'),
      lastUsedAt: null,
      revokedAt: null,
    });
    expect(JSON.stringify(inList)).not.toContain(key);
  });

  test('is nowhere in the database, neither whole nor in part, except by its SHA-256 and eight characters', async () => {
    const { id, key } = await issue();
    const { key: second } = await store.keys.rotate(id, 60_000);
    const everything = JSON.stringify(await sql(store.database, 'select row_to_json(api_key)::text from api_key'));
    for (const secret of [key, second]) {
      expect(everything).toContain(createHash('sha256').update(secret).digest('hex'));
      for (let at = 0; at + 12 <= secret.length; at += 1) expect(everything).not.toContain(secret.slice(at, at + 12));
    }
  });

  test('is random: no two secrets begin alike', async () => {
    const secrets = new Set<string>();
    for (let round = 0; round < 20; round += 1) secrets.add((await issue()).key.slice(4, 24));
    expect(secrets.size).toBe(20);
  });
});

describe.each(faces)('through $name', (face) => {
  test('a revoked key is refused, and stays revoked since the first time', async () => {
    const { id, key } = await issue();
    expect(await face.list(store, {}, key)).toEqual(accepted);
    const { revokedAt } = await store.keys.revoke(id);
    await eventually(async () => 'code' in (await face.list(store, {}, key)));
    expect(await face.list(store, {}, key)).toEqual(refused);
    expect((await store.keys.revoke(id)).revokedAt).toEqual(revokedAt);
  });

  test('an expired key is refused, by a node that knew it and by one that did not', async () => {
    const { id, key } = await issue({ expiresAt: new Date('2099-01-01') });
    expect(await face.list(store, {}, key)).toEqual(accepted);
    await sql(store.database, "update api_key set expires_at = now() - interval '1 second' where id = $1", [id]);
    await onNode(store, {}, async (node) => expect(await face.list({ ...store, ...node }, {}, key)).toEqual(refused));
    await eventually(async () => 'code' in (await face.list(store, {}, key)));
    expect(await face.list(store, {}, key)).toEqual(refused);
  });

  test('the last use is recorded without a write for every request', async () => {
    const { id, key } = await issue();
    await onNode(store, {}, async (node) => {
      for (let call = 0; call < 5; call += 1) await face.list({ ...store, ...node }, {}, key);
      expect((await listed(id))?.lastUsedAt).toBeNull();
    });
    expect((await listed(id))?.lastUsedAt).toBeInstanceOf(Date);
  });
});

test('the expiry of a key that a node knows counts to the millisecond, without a look-up', async () => {
  const authenticator = new Authenticator(store.database);
  const lookUp = (key: string) => authenticator.lookUp(key, '127.0.0.1');
  const now = Date.now;
  try {
    const moment = now();
    Date.now = () => moment;
    const { key: ending } = await issue({ expiresAt: new Date(moment + 500) });
    expect(await lookUp(ending)).toMatchObject({ name: 'shop' });
    Date.now = () => moment + 499;
    expect(lookUp(ending)).toMatchObject({ name: 'shop' });
    Date.now = () => moment + 500;
    expect(lookUp(ending)).toBeNull();
  } finally {
    Date.now = now;
  }
});
