import { hash, randomUUID } from 'node:crypto';
import { apis } from '../../support/apis.ts';
import { readsOf, sql } from '../../support/database-access.ts';
import { follow, seen } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { onNode, storeForAll } from '../../support/store.ts';
import { callWith, guess, withClock } from '../../support/wrong-keys.ts';
import { newKey, providerForAll } from './provider.ts';

/** Callers with tokens of an identity provider. */

const provider = providerForAll();
const store = storeForAll(provider.env);

const rex = { name: 'Rex', categoryId: 1 };
const created = { data: expect.objectContaining({ name: 'Rex' }) };
const createOnce = (key: string, once: string) =>
  rest(store, '/v1/pets', {
    method: 'POST',
    json: rex,
    key,
    headers: { 'idempotency-key': once },
  });
const hashOf = (sub: string) =>
  hash('sha256', JSON.stringify([provider.issuer, sub]), 'hex');
const idOf = async (sub: string) =>
  Number(
    (
      await sql<[string]>(
        store.database,
        'select id from api_key where hash = $1',
        [hashOf(sub)],
      )
    )[0]?.[0],
  );

describe.each(apis)('through $name', (api) => {
  test('a token with the scopes lists and creates', async () => {
    const token = provider.token();
    expect(await api.create(store, rex, token)).toEqual(created);
    expect(await api.list(store, { limit: 1 }, token)).toEqual({
      data: [expect.anything()],
    });
  });

  test('a token that may only read lists, may not create, and is told the scope it lacks', async () => {
    const token = provider.token({ scope: 'openid pets:read' });
    await api.create(store, rex, provider.token());
    expect(await api.list(store, { limit: 1 }, token)).toEqual({
      data: [expect.anything()],
    });
    const message = 'This needs a token with the scope "pets:write".';
    expect(await api.create(store, rex, token)).toEqual({
      code: 'FORBIDDEN',
      status: 403,
      message,
    });
  });

  test('a token without any scope of this service is 403, also for a list', async () => {
    const message = 'This needs a token with the scope "pets:read".';
    const forbidden = { code: 'FORBIDDEN', status: 403, message };
    for (const scope of ['openid', '', undefined, null, 7, {}]) {
      expect(await api.list(store, {}, provider.token({ scope }))).toEqual(
        forbidden,
      );
    }
  });
});

test.each<[string, Record<string, unknown>]>([
  ['scp, a list', { scp: ['x', 'pets:write'] }],
  ['scp, a text', { scp: 'x pets:write' }],
  ['permissions', { permissions: ['pets:write'] }],
  [
    'permissions beside a scope',
    { scope: 'openid', permissions: ['pets:write'] },
  ],
])('scopes are read from %s; write permits to read', async (_what, claims) => {
  const token = provider.token({ scope: undefined, ...claims });
  expect((await createOnce(token, randomUUID())).status).toBe(201);
  expect((await rest(store, '/v1/pets', { key: token })).status).toBe(200);
});

test('permissions of the user do not widen the scope that the client has asked for', async () => {
  const claims = {
    scope: 'openid pets:read',
    permissions: ['pets:read', 'pets:write'],
  };
  expect((await createOnce(provider.token(claims), randomUUID())).status).toBe(
    403,
  );
});

test('a token has scopes of one module, and is told the scope of that module which it lacks', () => {
  const scopes = 'see=pets:read,keep=pets:write,keep-shop=store:write';
  return onNode(
    store,
    { ...provider.env, JWT_SCOPES: scopes },
    async (node) => {
      const key = provider.token({ scope: 'see keep-shop' });
      expect((await rest(node, '/v1/pets', { key })).status).toBe(200);
      expect((await rest(node, '/v1/store/orders', { key })).status).toBe(501);
      const { status, headers } = await rest(node, '/v1/pets', {
        method: 'POST',
        json: rex,
        key,
      });
      expect([status, headers['www-authenticate']]).toEqual([
        403,
        'Bearer error="insufficient_scope", scope="keep"',
      ]);
    },
  );
});

test.each<[string, string, string, string]>([
  [
    'that has no name for it',
    'see=pets:read',
    '/v1/store/orders',
    'store:read',
  ],
  ['that names it in several modules', 'a=store:read,b=read', '/whoami', 'b'],
  ['that has no name for all', 'a=store:read,b=pets:write', '/whoami', 'a'],
])(
  'a token of a provider %s (%s) is told its scope: GET %s needs %s',
  (_provider, JWT_SCOPES, path, name) =>
    onNode(store, { ...provider.env, JWT_SCOPES }, async (node) => {
      const key = provider.token({ scope: 'openid' });
      const { status, json, headers } = await rest(node, path, { key });
      const message = `This needs a token with the scope "${name}".`;
      expect([status, json.message]).toEqual([403, message]);
      const isKnown = JWT_SCOPES.includes(`${name}=`);
      expect(headers['www-authenticate']).toBe(
        `Bearer error="insufficient_scope"${isKnown ? `, scope="${name}"` : ''}`,
      );
      const query = '{ pets { id } }';
      const { errors } = await graphqlText(node, { query }, key);
      expect(errors?.[0]?.message).toMatch(/^This needs a token with /);
    }),
);

test('a scope of a module that does not exist keeps the service from starting', async () => {
  const env = { ...provider.env, JWT_SCOPES: 'see=read,keep=pots:write' };
  await expect(onNode(store, env, async () => undefined)).rejects.toThrow(
    'JWT_SCOPES must be read, write or all, or one of a module (pets, store) like pets:read, not "pots:write".',
  );
});

test('a missing scope is in the challenge, as RFC 6750 has it', async () => {
  const read = await rest(store, '/v1/pets', {
    method: 'POST',
    json: rex,
    key: provider.token({ scope: 'pets:read' }),
  });
  expect(read.headers['www-authenticate']).toBe(
    'Bearer error="insufficient_scope", scope="pets:write"',
  );
  const none = await rest(store, '/v1/pets', {
    key: provider.token({ scope: 'openid' }),
  });
  expect(none.headers['www-authenticate']).toBe(
    'Bearer error="insufficient_scope", scope="pets:read"',
  );
});

test.each(['RS256', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'])(
  'a signature by %s is accepted',
  async (alg) => {
    const key =
      provider.keys.find((one) => one.alg === alg) ??
      (await provider.addKey(alg, alg));
    // A node that has not read the keys before this one was added.
    await onNode(store, provider.env, async (node) => {
      expect((await callWith(node, provider.token({}, {}, key))).status).toBe(
        200,
      );
    });
  },
);

test.each(['at+jwt', 'application/at+jwt', 'AT+JWT', 'JWT', undefined])(
  'the type %s is accepted',
  async (typ) => {
    expect(
      (await callWith(store, provider.token({ sub: `typ ${typ}` }, { typ })))
        .status,
    ).toBe(200);
  },
);

test.each<[string, () => Record<string, unknown>]>([
  ['exp 20 seconds ago', () => ({ exp: Math.floor(Date.now() / 1000) - 20 })],
  ['nbf in 29 seconds', () => ({ nbf: Math.floor(Date.now() / 1000) + 29 })],
  ['exp with a fraction', () => ({ exp: Date.now() / 1000 + 60.5 })],
  [
    'several audiences',
    () => ({ aud: ['https://other.example', 'https://animals.example'] }),
  ],
])('%s is accepted', async (_what, claims) => {
  expect(
    (await callWith(store, provider.token({ sub: _what, ...claims() }))).status,
  ).toBe(200);
});

test.each<[string, Record<string, unknown>, Record<string, unknown>?]>([
  ['unexpected "aud" claim value', { aud: 'https://other.example' }],
  ['unexpected "iss" claim value', { iss: 'https://other.example' }],
  ['"exp" claim timestamp check failed', { exp: 1_700_000_000 }],
  ['"nbf" claim timestamp check failed', { nbf: 4e9 }],
  ['missing required "exp" claim', { exp: undefined }],
  ['unexpected "typ" JWT header value', {}, { typ: 'logout+jwt' }],
])(
  'a token of the provider that is refused is told why: %s',
  async (reason, claims, header) => {
    const { status, headers, json } = await rest(store, '/v1/pets', {
      key: provider.token(claims, header),
    });
    const message = `The token is not valid: ${reason}.`;
    expect([status, json]).toEqual([
      401,
      { code: 'UNAUTHENTICATED', status: 401, message },
    ]);
    expect(headers['www-authenticate']).toBe('Bearer error="invalid_token"');
  },
);

test('a forged token is 401', async () => {
  const token = provider.token(
    {},
    {},
    { ...(await newKey('x')), kid: provider.keys[0]?.kid as string },
  );
  const { status, headers, json } = await rest(store, '/v1/pets', {
    key: token,
  });
  const message = 'The token is not valid, or has expired.';
  expect([status, json]).toEqual([
    401,
    { code: 'UNAUTHENTICATED', status: 401, message },
  ]);
  expect(headers['www-authenticate']).toBe('Bearer error="invalid_token"');
});

test('without an issuer a token is a wrong key', async () => {
  await onNode(store, {}, async (node) => {
    const { status, json } = await rest(node, '/v1/pets', {
      key: provider.token(),
    });
    expect([status, json.message]).toEqual([401, 'The API key is not valid.']);
  });
});

describe('a subject is one caller', () => {
  test('with any token, on every node; the store has the hash of its name only', async () => {
    const sub = 'grace@example.com';
    const once = randomUUID();
    const first = await createOnce(provider.token({ sub }), once);
    await onNode(store, provider.env, async (node) => {
      const again = await createOnce(provider.token({ sub, jti: '2' }), once);
      expect([again.json, again.headers['idempotent-replayed']]).toEqual([
        first.json,
        'true',
      ]);
      expect(
        (await callWith(node, provider.token({ sub, jti: '3' }))).status,
      ).toBe(200);
    });
    const rows = await sql<[string]>(
      store.database,
      'select row_to_json(api_key)::text from api_key',
    );
    expect(rows.filter(([row]) => row.includes(hashOf(sub)))).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain('grace');
  });

  test('also when its first requests are parallel', async () => {
    const tokens = Array.from({ length: 20 }, (_, jti) =>
      provider.token({ sub: 'parallel', jti: `${jti}` }),
    );
    const responses = await Promise.all(
      tokens.map((token) => callWith(store, token)),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(
      new Set([200]),
    );
    expect(
      await sql(store.database, 'select id from api_key where hash = $1', [
        hashOf('parallel'),
      ]),
    ).toHaveLength(1);
  });

  test('whose idempotency keys meet neither those of a key nor those of another subject', async () => {
    const once = randomUUID();
    const callers = [
      store.key,
      provider.token(),
      provider.token({ sub: 'eve' }),
      provider.token({ sub: '\ud800' }),
    ];
    const answers = [];
    for (const key of [...callers, provider.token({ sub: '\ud801' })])
      answers.push(await createOnce(key, once));
    expect(answers.map(({ status }) => status)).toEqual([
      201, 201, 201, 201, 201,
    ]);
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(5);
  });

  test('without a scope of getPet is told of its removal, too', async () => {
    await onNode(store, provider.env, async (node) => {
      const key = provider.token({ scope: '' });
      const { status, headers } = await rest(node, '/v1/pets/1', { key });
      expect([status, headers.sunset]).toEqual([
        403,
        'Thu, 05 Dec 2030 00:00:00 GMT',
      ]);
    });
  });

  test('is counted when it calls what is deprecated', async () => {
    await onNode(store, provider.env, (node) =>
      rest(node, '/v1/pets/1', { key: provider.token({ sub: 'old app' }) }),
    );
    const id = await idOf('old app');
    const rows = await sql(
      store.database,
      'select operation, calls from deprecated_call where key_id = $1',
      [id],
    );
    expect(rows).toEqual([['getPet', '1']]);
  });

  test('is refused with all its tokens once it is revoked, and gets no secret', async () => {
    const token = provider.token({ sub: 'mallory' });
    expect((await callWith(store, token)).status).toBe(200);
    const id = await idOf('mallory');
    const message = `${id} is a subject of ${provider.issuer}, which has no secret.`;
    await expect(store.keys.rotate(id, 0)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message,
    });
    await withClock(async (setTo) => {
      await store.keys.revoke(id);
      setTo(1000);
      expect((await callWith(store, token)).status).toBe(401);
      expect(
        (await callWith(store, provider.token({ sub: 'mallory', jti: 'new' })))
          .status,
      ).toBe(401);
    });
  });

  test('is not in the list of keys', async () => {
    expect((await callWith(store, provider.token())).status).toBe(200);
    expect(
      (await store.keys.list()).filter(({ name }) => name === provider.issuer),
    ).toEqual([]);
  });
});

test('a token is verified once in ten seconds, and looked up like a key', () =>
  withClock(async (setTo) => {
    const token = provider.token({
      sub: 'steady',
      exp: Date.now() / 1000 + 60,
    });
    const lookUps = async (at: number) => {
      setTo(at);
      return readsOf('api_key', store.database, async () => {
        for (let time = 0; time < 3; time += 1)
          expect((await callWith(store, token)).status).toBe(200);
      });
    };
    // The second finds the subject that was added after the first.
    expect(await lookUps(0)).toBe(2);
    expect(await lookUps(899)).toBe(0);
    expect(await lookUps(901)).toBe(1);
    expect(await lookUps(11_000)).toBe(1);
    setTo(90_001);
    expect((await callWith(store, token)).status).toBe(401);
  }));

test('a live list ends when its token expires, with the code of a revoked key, and resumes with a new one', async () => {
  const create = (name: string) =>
    rest(store, '/v1/pets', { method: 'POST', json: { ...rex, name } });
  // It is valid for two more seconds, because the clocks may differ by thirty.
  const exp = Math.floor(Date.now() / 1000) - 28;
  const first = await follow(
    store,
    {},
    { key: provider.token({ sub: 'follower', exp }) },
  );
  const other = await follow(
    store,
    {},
    { key: provider.token({ sub: 'follower' }) },
  );
  await create('Ada');
  await first.until(1);
  expect(await first.ended).toBe('whole');
  const error = {
    message: expect.stringMatching(/^The token is not valid/),
    extensions: { code: 'UNAUTHENTICATED', status: 401 },
  };
  const ended = { event: 'next', id: undefined, data: { errors: [error] } };
  expect(first.events.slice(1)).toEqual([
    ended,
    { event: 'complete', id: undefined, data: '' },
  ]);
  await create('Bob');
  const headers = { 'last-event-id': `${first.lastEventId}` };
  const second = await follow(
    store,
    {},
    { key: provider.token({ sub: 'follower' }), headers },
  );
  await second.until(1);
  await other.until(2);
  expect([seen(first), seen(second), seen(other)]).toEqual([
    ['Ada'],
    ['Bob'],
    ['Ada', 'Bob'],
  ]);
  for (const stream of [second, other]) stream.close();
});

test('the subscriptions of a subject are counted together', () =>
  onNode(
    store,
    { ...provider.env, SUBSCRIPTIONS_PER_KEY: '1' },
    async (node) => {
      const first = await follow(
        node,
        {},
        { key: provider.token({ sub: 'two tabs' }) },
      );
      expect(
        (
          await follow(
            node,
            {},
            { key: provider.token({ sub: 'two tabs', jti: '2' }) },
          )
        ).status,
      ).toBe(429);
      const other = await follow(
        node,
        {},
        { key: provider.token({ sub: 'another' }) },
      );
      expect(other.status).toBe(200);
      for (const stream of [first, other]) stream.close();
    },
  ));

describe('forged tokens', () => {
  const forged = async (count: number) => {
    const key = {
      ...(await newKey('x')),
      kid: provider.keys[0]?.kid as string,
    };
    return Array.from({ length: count }, (_, at) =>
      provider.token({ sub: `${at}` }, {}, key),
    );
  };

  test('are limited by address like wrong keys; signed tokens go on, also new ones', () =>
    onNode(
      store,
      { ...provider.env, AUTH_FAILURES_PER_MINUTE: '5' },
      async (node) => {
        const token = provider.token();
        expect((await callWith(node, token)).status).toBe(200);
        const statuses = [];
        for (const one of await forged(7))
          statuses.push((await callWith(node, one)).status);
        expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
        expect((await callWith(node, token)).status).toBe(200);
        expect(
          (await callWith(node, provider.token({ jti: 'renewed' }))).status,
        ).toBe(200);
        expect(await guess(node, 1)).toEqual([429]);
      },
    ));

  test('do not include those that have expired, so that users behind one address do not lock others out', () =>
    onNode(
      store,
      { ...provider.env, AUTH_FAILURES_PER_MINUTE: '5' },
      async (node) => {
        for (let jti = 0; jti < 10; jti += 1) {
          expect(
            (
              await callWith(
                node,
                provider.token({ exp: 1_700_000_000, jti: `${jti}` }),
              )
            ).status,
          ).toBe(401);
        }
        expect((await callWith(node, provider.token())).status).toBe(200);
      },
    ));
});
