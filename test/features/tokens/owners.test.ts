import { Records } from '#engine/records/records.js';
import {
  diariesModule,
  openDiariesOn,
} from '../../modules/diaries/diaries.module.ts';
import type { Diary } from '../../modules/diaries/diary.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from './provider.ts';

/** Rows that belong to users, or to their tenants. */

const provider = providerForAll();
const tokenOf = (claims: object) =>
  provider.token({ scope: 'pets:write', ...claims });

describe('a user', () => {
  const store = storeForAll(provider.env, undefined, { more: [diariesModule] });
  const add = (claims: object, title = 'Mine') =>
    rest(store, '/v1/diaries', {
      method: 'POST',
      json: { title, mood: 'fine' },
      key: tokenOf(claims),
    });
  const list = (claims: object) =>
    rest(store, '/v1/diaries', { key: tokenOf(claims) });

  test('owns rows by the name in the token, whatever its session, and sees no others', async () => {
    const [ofAda, ofBob] = [await add({}), await add({ sub: 'bob' })];
    expect(ofAda.json.createdBy).toBe('ada');
    expect(ofBob.json.createdBy).toBe('bob');
    expect((await list({ jti: 'later' })).json).toEqual([ofAda.json]);
    expect((await list({ sub: 'bob' })).json).toEqual([ofBob.json]);
    for (const sub of ['Ada', 'ada ', 'ad', '%', 'ada\u200b', "ada' or '1'='1"])
      expect((await list({ sub })).json).toEqual([]);
  });

  test('is no key, and is refused with a name that could be one, or that two could have', async () => {
    const message =
      'This needs a token with a subject, of at most 255 characters, that does not begin with "key:".';
    const refusal = { code: 'FORBIDDEN', status: 403, message };
    const names = ['key:1', 'key:0', 'key:', 'a\u0000', '\ud800', '\udfff'];
    const all = await Promise.all([
      ...[...names, 'x'.repeat(256)].map((sub) => list({ sub })),
      ...[...names, 'x'.repeat(256)].map((sub) => add({ sub })),
      // Others in the batches of these do not fail.
      ...Array.from({ length: 10 }, () => list({ sub: 'carol' })),
    ]);
    for (const { json } of all.slice(0, 14)) expect(json).toEqual(refusal);
    for (const { json } of all.slice(14)) expect(json).toEqual([]);
    const { errors } = await graphqlText(
      store,
      { query: '{ diaries { id } }' },
      tokenOf({ sub: 'key:1' }),
    );
    expect(errors).toMatchObject([{ message }]);
    expect((await list({ sub: 'x'.repeat(255) })).json).toEqual([]);
  });
});

describe('a tenant', () => {
  const owner = { member: 'createdBy', by: 'tenant' } as const;
  const open = openDiariesOn(Records, { owner });
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org_id',
      JWT_SCOPES: 'pets:write=write,support=diaries:all',
    }),
  );
  const store = storeForAll(env, undefined, {
    more: [{ ...diariesModule, open }],
  });
  const add = (key: string) =>
    rest(store, '/v1/diaries', {
      method: 'POST',
      json: { title: `${Math.random()}`, mood: 'fine' },
      key,
    });
  const list = async (key: string) =>
    (await rest(store, '/v1/diaries', { key })).json;

  test('has rows that all its users share, and no other tenant sees', async () => {
    const [one, other] = [tokenOf({ org_id: 'a' }), tokenOf({ org_id: 'b' })];
    const rows = [
      (await add(one)).json,
      (await add(other)).json,
      (await add(tokenOf({ sub: 'bob', org_id: 'a' }))).json,
    ];
    expect(rows.map(({ createdBy }) => createdBy)).toEqual(['a', 'b', 'a']);
    expect(await list(one)).toEqual([rows[0], rows[2]]);
    expect(await list(other)).toEqual([rows[1]]);
    expect(await list(tokenOf({ sub: 'a', org_id: 'A' }))).toEqual([]);
    const support = tokenOf({ scope: 'pets:write support' });
    const ofBoth = (await list(support)).filter(({ createdBy }: Diary) =>
      ['a', 'b'].includes(createdBy),
    );
    expect(ofBoth).toEqual(rows);
  });

  test('has idempotency keys of its own: a user of two repeats in one what it did there', async () => {
    const json = { title: 'Once', mood: 'fine' };
    const once = (org_id: string) =>
      rest(store, '/v1/diaries', {
        method: 'POST',
        json,
        key: tokenOf({ sub: 'eve', org_id }),
        headers: { 'idempotency-key': 'once' },
      });
    const [c, d] = [await once('c'), await once('d')];
    expect([c, d].map(({ json }) => json.createdBy)).toEqual(['c', 'd']);
    expect(d.headers['idempotent-replayed']).toBeUndefined();
    for (const [tenant, first] of [
      ['c', c],
      ['d', d],
    ] as const) {
      const again = await once(tenant);
      expect(again.json).toEqual(first.json);
      expect(again.headers['idempotent-replayed']).toBe('true');
    }
  });

  test('must be in the token, as a text: without one nothing is seen or added', async () => {
    const message =
      'This needs a token with a tenant, of at most 255 characters, that does not begin with "key:".';
    const refusal = { code: 'FORBIDDEN', status: 403, message };
    const tokens = [undefined, null, '', 1, ['a'], { a: 1 }, true, 'key:1'].map(
      (org_id) => tokenOf({ org_id }),
    );
    for (const key of [store.key, ...tokens]) {
      expect(await list(key)).toEqual(refusal);
      expect((await add(key)).json).toEqual(refusal);
    }
    // It sees all, and has no tenant to which a new one could belong.
    const support = tokenOf({ scope: 'pets:write support' });
    expect((await add(support)).json).toEqual(refusal);
  });
});
