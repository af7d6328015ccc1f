import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AnimalStore, type AnimalStoreOptions } from 'animal-store-client';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** clients/typescript when the network, a proxy or the service fails. */

const store = storeForAll();
beforeEach(() => store.empty());

const connect = (options: Partial<AnimalStoreOptions>) =>
  new AnimalStore({ url: store.origin, key: store.key, ...options });

/**
 * A client whose requests get these responses in turn, the last one repeatedly.
 */
function scripted(
  responses: Array<() => Response | Promise<Response>>,
  options: Partial<AnimalStoreOptions> = {},
) {
  const requests: Request[] = [];
  const scriptedFetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    requests.push(request.clone());
    const respond = responses[Math.min(requests.length, responses.length) - 1];
    return respond === real ? fetch(request) : (respond as () => Response)();
  };
  return { client: connect({ fetch: scriptedFetch, ...options }), requests };
}
const real = () => new Response();
const json =
  (status: number, body: object, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify(body), { status, headers });
const unavailable = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'Try again.',
  status: 503,
};
const empty = json(200, []);
const broken = () => {
  throw new TypeError('fetch failed');
};
/**
 * A client that loses its first response, after the service has carried out the
 * request.
 */
const createLossyClient = () => {
  let isLost = false;
  const lossyFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (isLost) return response;
    isLost = true;
    await response.text();
    throw new TypeError('terminated');
  };
  return connect({ fetch: lossyFetch });
};

describe('a creation whose response is lost is sent again, and happens once', () => {
  test('by REST', async () => {
    const rex = await createLossyClient().create({
      name: 'Rex',
      categoryId: 1,
    });
    expect(await connect({}).page()).toMatchObject({ items: [rex] });
  });

  test('by GraphQL', async () => {
    const text =
      'mutation { a: createPet(input: { name: "a", categoryId: 1 }) { id name } b: createPet(input: { name: "b", categoryId: 1 }) { id name } }';
    const { a, b } = await createLossyClient().graphql<{
      a: object;
      b: object;
    }>(text);
    expect(await createLossyClient().graphql('{ pets { id name } }')).toEqual({
      pets: [a, b],
    });
  });

  test('each creation has its own idempotency key, or that of the caller, and its repetitions keep it', async () => {
    const { client, requests } = scripted([
      json(503, unavailable),
      real,
      json(503, unavailable),
      ...[real, real, real, real],
    ]);
    await client.create({ name: 'a', categoryId: 1 });
    await client.create({ name: 'b', categoryId: 1 });
    await client.create(
      { name: 'c', categoryId: 1 },
      { idempotencyKey: 'order-7' },
    );
    for (const idempotencyKey of [null as never, undefined])
      await client.create({ name: 'd', categoryId: 1 }, { idempotencyKey });
    const names = requests.map(({ headers }) => headers.get('idempotency-key'));
    expect(names.slice(0, 5)).toEqual([
      ...[names[0], names[0], names[2], names[2], 'order-7'],
    ]);
    expect(new Set(names).size).toBe(5);
    expect(names).not.toContain('null');
  });
});

describe('a request is sent again after', () => {
  const inUse = {
    code: 'IDEMPOTENCY_KEY_IN_USE',
    message: 'Under way.',
    status: 409,
  };
  const extensions = { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: 0 };
  test.each([
    ['a failed connection', broken],
    ['503', json(503, unavailable)],
    [
      '429 with Retry-After',
      json(
        429,
        { ...unavailable, code: 'TOO_MANY_REQUESTS' },
        { 'retry-after': '0' },
      ),
    ],
    ['409 of a key that is in use', json(409, inUse, { 'retry-after': '0' })],
    [
      '502 of a proxy',
      () => new Response('<h1>Bad Gateway</h1>', { status: 502 }),
    ],
    [
      '200 of GraphQL with a temporary error',
      json(200, { errors: [{ message: 'Later.', extensions }] }),
    ],
    [
      'an incomplete response',
      () =>
        new Response(
          new ReadableStream({ start: (c) => c.error(new Error('gone')) }),
        ),
    ],
  ])('%s', async (_, respond) => {
    const { client, requests } = scripted([
      respond,
      json(200, { data: { pets: [] } }),
    ]);
    expect(await client.graphql('{ pets { id } }')).toEqual({ pets: [] });
    expect(requests).toHaveLength(2);
  });
});

test('a request is not sent again after a permanent error', async () => {
  const later = {
    message: 'Later.',
    extensions: { code: 'SERVICE_UNAVAILABLE' },
  };
  const never = { message: 'Never.', extensions: { code: 'FORBIDDEN' } };
  for (const respond of [
    json(500, { code: 'INTERNAL_SERVER_ERROR', message: 'No.', status: 500 }),
    json(409, { code: 'CONFLICT', message: 'No.', status: 409 }),
    json(422, { code: 'IDEMPOTENCY_KEY_REUSED', message: 'No.', status: 422 }),
    json(200, { errors: [later, never] }),
    json(200, { errors: [null] }),
    json(200, { errors: [] }),
    json(200, { errors: [{ message: 'No.', extensions: null }] }),
    () => new Response('<h1>Welcome</h1>'),
  ]) {
    const { client, requests } = scripted([respond]);
    await expect(client.graphql('{ pets { id } }')).rejects.toHaveProperty(
      'name',
      'StoreError',
    );
    expect(requests).toHaveLength(1);
  }
});

test.each([
  'null',
  '{}',
  '[{"id":"5","categoryId":5}]',
  '[{"id":5}]',
  '[{"id":1e3,"categoryId":5}]',
])('%s is no page', async (text) => {
  const { client, requests } = scripted([() => new Response(text)]);
  await expect(client.page()).rejects.toMatchObject({
    code: 'UNEXPECTED_ANSWER',
    status: 200,
  });
  expect(requests).toHaveLength(1);
});

test('294 of GraphQL is an error that has the partial data', async () => {
  const errors = [
    {
      message: 'No.',
      path: ['b'],
      extensions: { code: 'INTERNAL_SERVER_ERROR', status: 500 },
    },
  ];
  const { client } = scripted([json(294, { data: { a: 1, b: null }, errors })]);
  const failure = {
    name: 'StoreError',
    message: 'No.',
    code: 'INTERNAL_SERVER_ERROR',
    status: 500,
  };
  const refusal = { ...failure, errors, data: { a: 1, b: null } };
  await expect(client.graphql('{ a b }')).rejects.toMatchObject(refusal);
});

test('an idempotency key that cannot be a header is a TypeError, and no network error', async () => {
  const { client, requests } = scripted([real]);
  const creation = client.create(
    { name: 'a', categoryId: 1 },
    { idempotencyKey: '€' },
  );
  await expect(creation).rejects.toThrow(TypeError);
  expect(requests).toEqual([]);
});

test('attempts are limited in number', async () => {
  const { client, requests } = scripted([broken], { retries: 2 });
  await expect(client.page()).rejects.toMatchObject({
    code: 'NETWORK_ERROR',
    status: undefined,
  });
  expect(requests).toHaveLength(3);
});

describe('Retry-After', () => {
  const date = (milliseconds: number) => new Date(milliseconds).toUTCString();
  const soon = () => date(Math.ceil(Date.now() / 1000) * 1000 + 1000);
  test.each([
    ['in seconds', () => ({ 'retry-after': '1' })],
    ['as a date', () => ({ 'retry-after': soon() })],
    // The clock of the service is years behind.
    [
      'as a date of another clock',
      () => ({ date: date(1e12), 'retry-after': date(1e12 + 1000) }),
    ],
  ])('%s delays the next attempt', async (_, headers) => {
    const { client } = scripted([
      () => json(503, unavailable, headers())(),
      empty,
    ]);
    const start = performance.now();
    expect(await client.page()).toEqual({ items: [], next: undefined });
    expect(performance.now() - start).toBeGreaterThan(990);
  });

  test.each([
    ...['-1', '1.5', '1, 1', 'soon'].map((value) =>
      json(503, unavailable, { 'retry-after': value }),
    ),
    ...[-5, 'soon', null].map((retryAfter) =>
      json(200, {
        errors: [
          {
            message: 'Later.',
            extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter },
          },
        ],
      }),
    ),
  ])('that is no time is ignored (%#)', async (respond) => {
    const { client } = scripted([respond], { retries: 0 });
    const refusal = { code: 'SERVICE_UNAVAILABLE', retryAfter: undefined };
    await expect(client.graphql('{ a }')).rejects.toMatchObject(refusal);
  });

  test('beyond the time of the call ends it at once, and is in the error', async () => {
    for (const value of ['61', '99999999999999999999']) {
      const { client, requests } = scripted([
        json(503, unavailable, { 'retry-after': value }),
      ]);
      await expect(client.page()).rejects.toMatchObject({
        ...unavailable,
        retryAfter: Number(value),
      });
      expect(requests).toHaveLength(1);
    }
  });
});

describe('a waiting caller', () => {
  const never: typeof fetch = (_, init) =>
    new Promise((_, reject) =>
      init?.signal?.addEventListener('abort', () =>
        reject(init.signal?.reason),
      ),
    );
  const silent = (options: Partial<AnimalStoreOptions>) =>
    connect({ fetch: never, ...options });

  test('gets TIMEOUT after a limited time', async () => {
    const timeout = {
      code: 'TIMEOUT',
      message: `No answer from ${store.origin} in 50 ms.`,
    };
    await expect(
      silent({ attemptTimeoutMs: 50, retries: 1 }).page(),
    ).rejects.toMatchObject(timeout);
    await expect(silent({ timeoutMs: 50 }).page()).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
    await expect(silent({}).page({}, { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
  });

  test('may give up before, during and between attempts', async () => {
    const reason = new Error('no longer wanted');
    await expect(
      silent({}).page({}, { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
    const user = new AbortController();
    const waiting = silent({}).page({}, { signal: user.signal });
    const between = scripted([json(503, unavailable, { 'retry-after': '50' })]);
    const paused = between.client.page({}, { signal: user.signal });
    queueMicrotask(() => setImmediate(() => user.abort(reason)));
    await expect(waiting).rejects.toBe(reason);
    await expect(paused).rejects.toBe(reason);
    expect(between.requests).toHaveLength(1);
    const late = new AbortController();
    const answered = scripted([
      () => {
        late.abort(reason);
        return json(503, unavailable, { 'retry-after': '50' })();
      },
    ]);
    await expect(
      answered.client.page({}, { signal: late.signal }),
    ).rejects.toBe(reason);

    // No listener remains on a signal that outlives the call.
    const { signal } = new AbortController();
    for (const respond of [empty, broken]) {
      const { client } = scripted([respond], { retries: 0 });
      await client.page({}, { signal }).catch(() => {});
    }
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('the key stays with the service', () => {
  test('redirects are refused', async () => {
    let visits = 0;
    const server = createServer(({ url }, response) => {
      if (url === '/elsewhere') visits++;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const refusal = { code: 'UNEXPECTED_ANSWER', status: 307 };
    await expect(
      new AnimalStore({ url, key: store.key }).page(),
    ).rejects.toMatchObject(refusal);
    expect(visits).toBe(0);
    server.close().closeAllConnections();
  });

  test('the client uses only `after` of a link to the next page', async () => {
    const link =
      '<http://elsewhere.example/v1/pets?limit=1&after=9007199254740993>; rel="next"';
    const { client, requests } = scripted([json(200, [], { link }), empty]);
    for await (const _ of client.pets({ limit: 1 }))
      throw new Error('There is none.');
    expect(requests[1]?.url).toBe(
      `${store.origin}/v1/pets?limit=1&after=9007199254740993`,
    );
  });

  test.each(['?after=5', '?limit=1', '?after=x'])(
    'a link to %s on the page after 5 is an error',
    async (query) => {
      const { client, requests } = scripted([
        json(200, [], { link: `</v1/pets${query}>; rel="next"` }),
      ]);
      await expect(client.page({ after: 5 })).rejects.toMatchObject({
        code: 'UNEXPECTED_ANSWER',
      });
      expect(requests).toHaveLength(1);
    },
  );
});
