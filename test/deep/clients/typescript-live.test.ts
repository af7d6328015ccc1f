import { getEventListeners } from 'node:events';
import {
  AnimalStore,
  type AnimalStoreOptions,
  type IdType,
  type Pet,
} from 'animal-store-client';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { TcpProxy } from '../../support/servers/tcp-proxy.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * `added` of clients/typescript: a live list that survives lost connections.
 */

const store = storeForAll();
beforeEach(async () => {
  // A position in an empty store precedes every animal ever added; a
  // subscription keeps the old end of the list.
  await eventually(async () => store.app.subscriptions.count === 0);
  await store.empty();
});

const connect = <Ids extends IdType = 'bigint'>(
  options: Partial<AnimalStoreOptions<Ids>> = {},
) => new AnimalStore({ url: store.origin, key: store.key, ...options });

let requests: unknown[] = [];
beforeEach(() => {
  requests = [];
});
const countingFetch: typeof fetch = (input, init) => {
  requests.push(input);
  return fetch(input, init);
};

/** Collects the animals of a list, and the error that ends it. */
function follow(list: (signal: AbortSignal) => AsyncIterable<Pet>) {
  const user = new AbortController();
  const seen = { pets: [] as Pet[], failure: undefined as unknown };
  let isOver = false;
  const ended = (async () => {
    for await (const pet of list(user.signal)) seen.pets.push(pet);
  })()
    .catch((error) => {
      seen.failure = error;
    })
    .finally(() => {
      isOver = true;
    });
  const until = (count: number) =>
    eventually(async () => isOver || seen.pets.length >= count);
  return { seen, user, ended, until };
}

/**
 * Follows all animals through a `TcpProxy`, whose connections the test can break.
 */
async function followRoad(options: Partial<AnimalStoreOptions> = {}) {
  const proxy = new TcpProxy(new URL(store.origin));
  await proxy.open();
  const live = follow((signal) =>
    connect({ url: proxy.url, ...options }).added({ after: 0 }, { signal }),
  );
  /** Expects these animals and no others, and ends the list. */
  const delivers = async (pets: Pet[]) => {
    await live.until(pets.length);
    expect(live.seen).toEqual({ pets, failure: undefined });
    live.user.abort();
    await live.ended;
    proxy.cut();
  };
  return { proxy, live, delivers };
}

describe('no animal is missing or repeated', () => {
  test('when the connection is cut ten times while two hundred animals are created', async () => {
    const { proxy, live, delivers } = await followRoad();
    const created: Pet[] = [];
    for (let at = 0; at < 200; at++) {
      created.push(
        await connect().create({
          name: `animal ${at}`,
          categoryId: 9007199254740993n,
        }),
      );
      if (at % 20 !== 10) continue;
      await live.until(at / 2);
      proxy.cut();
      await proxy.open();
    }
    await delivers(created);
  });

  test('when nothing more arrives, although no connection has ended', async () => {
    const { proxy, live, delivers } = await followRoad({
      attemptTimeoutMs: 1000,
      retries: 100,
      fetch: countingFetch,
    });
    const first = await connect().create({ name: 'first', categoryId: 1 });
    await live.until(1);
    const before = requests.length;
    proxy.isSilent = true;
    const second = await connect().create({ name: 'second', categoryId: 1 });
    await eventually(async () => requests.length > before);
    proxy.isSilent = false;
    await delivers([first, second]);
  });
});

test('a list begins after an animal, filters by status, and has exact ids, as bigint or as text', async () => {
  const client = connect();
  const create = (name: string, status: 'sold' | 'pending') =>
    client.create({ name, status, categoryId: -9223372036854775808n });
  const { id } = await create('a', 'sold');
  const at = { after: id, status: 'sold' } as const;
  const live = follow((signal) => client.added(at, { signal }));
  const c = await create('c\u2028id: 0\n\n', 'sold');
  await create('d', 'pending');
  const e = await create('e', 'sold');
  await live.until(2);
  expect(live.seen).toEqual({ pets: [c, e], failure: undefined });
  live.user.abort();
  await live.ended;
  const texts: unknown[] = [];
  for await (const pet of connect({ ids: 'string' }).added({
    ...at,
    after: `${id}`,
  }))
    if (texts.push(pet) === 2) break;
  const categoryId = '-9223372036854775808';
  expect(texts).toEqual(
    [c, e].map((pet) => ({ ...pet, id: `${pet.id}`, categoryId })),
  );
  await eventually(async () => store.app.subscriptions.count === 0);
});

const petEvent = (id: string | number, name = 'Rex') =>
  `event: next\nid: ${id}\ndata: {"data":{"petAdded":{"id":"${id}","name":"${name}","categoryId":"5","status":"sold"}}}\n\n`;
const errorEvent = (code: string, extensions: object = {}) =>
  `event: next\ndata: ${JSON.stringify({ errors: [{ message: 'No.', extensions: { code, ...extensions } }] })}\n\nevent: complete\ndata:\n\n`;

/** A connection that delivers these pieces and then ends. */
const events =
  (...pieces: Array<string | Uint8Array>) =>
  () => {
    const body = new ReadableStream({
      start(stream) {
        for (const piece of pieces)
          stream.enqueue(
            typeof piece === 'string' ? new TextEncoder().encode(piece) : piece,
          );
        stream.close();
      },
    });
    return new Response(body, {
      headers: { 'content-type': 'text/event-stream; charset=utf-8' },
    });
  };
const json = (status: number, code: string) => () =>
  new Response(JSON.stringify({ code, message: 'No.', status }), {
    status,
    headers: { 'retry-after': '0' },
  });
const broken = () => {
  throw new TypeError('fetch failed');
};
const forbidden = events(errorEvent('FORBIDDEN', { status: 403 }));

/**
 * Follows a list over these connections in turn, the last one repeatedly;
 * `forbidden` ends it.
 */
async function scripted(
  connections: Array<() => Response>,
  options: Partial<AnimalStoreOptions> = {},
) {
  const afters: unknown[] = [];
  const client = connect({
    ...options,
    fetch: async (_input, init) => {
      const { variables } = JSON.parse(String(init?.body));
      const connection =
        connections[
          Math.min(afters.push(variables.after), connections.length) - 1
        ];
      return (connection as () => Response)();
    },
  });
  const { seen, ended } = follow(() => client.added());
  await ended;
  return {
    afters,
    names: seen.pets.map(({ name }) => name),
    failure: seen.failure,
  };
}

const rex = new TextEncoder().encode(petEvent(7, 'Réx'));

test.each<[string, Array<() => Response>, unknown[], string[]]>([
  ['a failed connection', [broken], [undefined], []],
  [
    'a service with too many subscriptions',
    [json(503, 'SERVICE_UNAVAILABLE')],
    [undefined],
    [],
  ],
  [
    'an exhausted quota',
    [events(errorEvent('TOO_MANY_REQUESTS', { retryAfter: 0 }))],
    [undefined],
    [],
  ],
  [
    'a connection that sent the first position',
    [events('id: 6\n\n')],
    ['6'],
    [],
  ],
  [
    'an incomplete animal',
    [events('id: 6\n\n', petEvent(7).slice(0, -1))],
    ['6'],
    [],
  ],
  [
    'an animal in two pieces, split in a character',
    [events(rex.slice(0, 55), rex.slice(55))],
    ['7'],
    ['Réx'],
  ],
  [
    'two animals in one piece',
    [events(`id: 6\n\n${petEvent(7, 'a')}${petEvent(8, 'b')}`)],
    ['8'],
    ['a', 'b'],
  ],
  ...['\r\n', '\r'].map(
    (end): [string, Array<() => Response>, string[], string[]] => [
      `lines that end in ${JSON.stringify(end)}, byte by byte`,
      [
        events(
          ...`id: 6\n\n:\n\n${petEvent(7, 'a')}${petEvent(8, 'b')}`
            .replaceAll('\n', end)
            .split(/(?:)/),
        ),
      ],
      ['8'],
      ['a', 'b'],
    ],
  ),
  [
    'names with what else ends lines',
    [events(petEvent(7, 'a\u2028b'), petEvent(8, 'c\u2029d\u0085e'))],
    ['8'],
    ['a\u2028b', 'c\u2029d\u0085e'],
  ],
  ['heartbeats', [events('id: 6\n\n:\n\n', ':\n\n')], ['6'], []],
  [
    'a position before the last animal',
    [events(petEvent(7)), events('id: 6\n\n')],
    ['7', '7'],
    ['Rex'],
  ],
])(
  'a list continues after %s',
  async (_, connections, laterAfters, expected) => {
    const { afters, names, failure } = await scripted([
      ...connections,
      forbidden,
    ]);
    expect({ afters, names }).toEqual({
      afters: [undefined, ...laterAfters],
      names: expected,
    });
    expect(failure).toMatchObject({ code: 'FORBIDDEN', status: 403 });
  },
);

test.each<[string, () => Response, object]>([
  [
    'an error of the operation',
    events(errorEvent('GRAPHQL_VALIDATION_FAILED')),
    { code: 'GRAPHQL_VALIDATION_FAILED' },
  ],
  [
    'null for an animal',
    events('data: {"data":{"petAdded":null}}\n\n'),
    { code: 'UNEXPECTED_ANSWER' },
  ],
  ['an invalid id', events(petEvent('x')), { code: 'UNEXPECTED_ANSWER' }],
  [
    'a page of HTML',
    () => new Response('<h1>Welcome</h1>'),
    { code: 'UNEXPECTED_ANSWER', status: 200 },
  ],
  [
    'a redirect',
    () => new Response(null, { status: 307 }),
    { code: 'UNEXPECTED_ANSWER', status: 307 },
  ],
  [
    '500',
    json(500, 'INTERNAL_SERVER_ERROR'),
    { code: 'INTERNAL_SERVER_ERROR', status: 500 },
  ],
])(
  'a list ends with %s, without another attempt',
  async (_, connection, failure) => {
    const ended = await scripted([connection]);
    expect(ended).toMatchObject({
      names: [],
      afters: [undefined],
      failure: { name: 'StoreError', ...failure },
    });
  },
);

const limits = { timeoutMs: 1500, retries: 0 };
test.each<
  [
    string,
    Array<() => Response>,
    Partial<AnimalStoreOptions>,
    number | undefined,
  ]
>([
  ['in number at first: failed connections', [broken], { retries: 2 }, 3],
  [
    'in number at first: refusals',
    [events(errorEvent('TOO_MANY_REQUESTS', { retryAfter: 0 }))],
    { retries: 2 },
    3,
  ],
  [
    'in time later: failed connections',
    [events(petEvent(6)), broken],
    limits,
    undefined,
  ],
  [
    'in time later: connections without animals',
    [events(petEvent(6)), events('id: 6\n\n')],
    limits,
    undefined,
  ],
])('attempts are limited %s', async (_, connections, options, count) => {
  const { afters, failure } = await scripted(connections, options);
  expect(afters).toHaveLength(count ?? Math.max(afters.length, 2));
  expect(failure).toHaveProperty('name', 'StoreError');
});

describe('the real service', () => {
  test('refuses a wrong key, and ends the list of a key that is revoked', async () => {
    const wrong = follow(() =>
      connect({ key: 'ask_wrong', fetch: countingFetch }).added(),
    );
    await wrong.ended;
    expect(requests).toHaveLength(1);
    const { key, id } = await store.keys.issue({
      name: 'frontend',
      scope: 'read',
    });
    const revoked = follow(() => connect({ key }).added({ after: 0 }));
    const pet = await connect().create({ name: 'Rex', categoryId: 1 });
    await revoked.until(1);
    await store.keys.revoke(id);
    await revoked.ended;
    const failure = expect.objectContaining({
      name: 'StoreError',
      code: 'UNAUTHENTICATED',
      status: 401,
    });
    expect(wrong.seen).toEqual({ pets: [], failure });
    expect(revoked.seen).toEqual({ pets: [pet], failure });
  });

  test('goes on with the next token of a function when one has expired', async () => {
    const { key, id } = await store.keys.issue({
      name: 'frontend',
      scope: 'read',
    });
    const tokens = [key, store.key];
    const live = follow((signal) =>
      connect({ key: () => tokens[0] ?? 'none' }).added(
        { after: 0 },
        { signal },
      ),
    );
    const pets = [await connect().create({ name: 'Rex', categoryId: 1 })];
    await live.until(1);
    tokens.shift();
    await store.keys.revoke(id);
    pets.push(await connect().create({ name: 'Tom', categoryId: 1 }));
    await live.until(2);
    expect(live.seen).toEqual({ pets, failure: undefined });
    live.user.abort();
    await live.ended;
    const refused = follow(() =>
      connect({ key: () => 'ask_wrong', fetch: countingFetch }).added(),
    );
    await refused.ended;
    expect([requests.length, refused.seen.failure]).toEqual([
      1,
      expect.objectContaining({ code: 'UNAUTHENTICATED' }),
    ]);
  });

  test('has no subscription left when the caller gives up: while it waits, in the middle of a piece, or before', async () => {
    const reason = new Error('no longer wanted');
    const waiting = follow((signal) => connect().added({}, { signal }));
    await eventually(async () => store.app.subscriptions.count === 1);
    waiting.user.abort(reason);
    await waiting.ended;
    expect(waiting.seen.failure).toBe(reason);
    expect(getEventListeners(waiting.user.signal, 'abort')).toEqual([]);
    for (const name of ['a', 'b', 'c'])
      await connect().create({ name, categoryId: 1 });
    const middle = new AbortController();
    const live = (async () => {
      for await (const { name } of connect().added(
        { after: 0 },
        { signal: middle.signal },
      )) {
        expect(name).toBe('a');
        middle.abort(reason);
      }
    })();
    await expect(live).rejects.toBe(reason);
    const before = follow(() =>
      connect().added({}, { signal: AbortSignal.abort(reason) }),
    );
    await before.ended;
    expect(before.seen.failure).toBe(reason);
    await eventually(async () => store.app.subscriptions.count === 0);
  });
});
