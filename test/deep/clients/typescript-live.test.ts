import { getEventListeners } from 'node:events';
import { AnimalStore, type AnimalStoreOptions, type IdType, type Pet } from 'animal-store-client';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { Road } from '../../support/road.ts';
import { storeForAll } from '../../support/store.ts';

/** `added` of clients/typescript: a live list, whatever becomes of its connections. */

const store = storeForAll();
beforeEach(async () => {
  // A position in an empty store is before all that was ever added, and the end of the list is kept while one follows.
  await eventually(async () => store.app.subscriptions.count === 0);
  await store.empty();
});

const connected = <Ids extends IdType = 'bigint'>(options: Partial<AnimalStoreOptions<Ids>> = {}) =>
  new AnimalStore({ url: store.origin, key: store.key, ...options });

let requests: unknown[] = [];
beforeEach(() => {
  requests = [];
});
const counted: typeof fetch = (input, init) => {
  requests.push(input);
  return fetch(input, init);
};

/** What a list has brought so far, and what it has ended with. */
function followed(list: (signal: AbortSignal) => AsyncIterable<Pet>) {
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
  const until = (count: number) => eventually(async () => isOver || seen.pets.length >= count);
  return { seen, user, ended, until };
}

/** Follows all animals by a road to the service, whose connections the test breaks. */
async function byRoad(options: Partial<AnimalStoreOptions> = {}) {
  const road = new Road(new URL(store.origin));
  await road.open();
  const live = followed((signal) => connected({ url: road.url, ...options }).added({ after: 0 }, { signal }));
  /** That these have come and nothing else, in the end. */
  const brings = async (pets: Pet[]) => {
    await live.until(pets.length);
    expect(live.seen).toEqual({ pets, failure: undefined });
    live.user.abort();
    await live.ended;
    road.cut();
  };
  return { road, live, brings };
}

describe('no animal is missing and none comes twice', () => {
  test('while the connection is cut ten times, and two hundred animals are created', async () => {
    const { road, live, brings } = await byRoad();
    const created: Pet[] = [];
    for (let at = 0; at < 200; at++) {
      created.push(await connected().create({ name: `animal ${at}`, categoryId: 9007199254740993n }));
      if (at % 20 !== 10) continue;
      await live.until(at / 2);
      road.cut();
      await road.open();
    }
    await brings(created);
  });

  test('while nothing arrives any more, although no connection has ended', async () => {
    const { road, live, brings } = await byRoad({ attemptTimeoutMs: 1000, retries: 100, fetch: counted });
    const first = await connected().create({ name: 'first', categoryId: 1 });
    await live.until(1);
    const before = requests.length;
    road.isSilent = true;
    const second = await connected().create({ name: 'second', categoryId: 1 });
    await eventually(async () => requests.length > before);
    road.isSilent = false;
    await brings([first, second]);
  });
});

test('it begins after an animal, and has those of a status, to the last digit, as bigint or as text', async () => {
  const client = connected();
  const create = (name: string, status: 'sold' | 'pending') =>
    client.create({ name, status, categoryId: -9223372036854775808n });
  const { id } = await create('a', 'sold');
  const at = { after: id, status: 'sold' } as const;
  const live = followed((signal) => client.added(at, { signal }));
  const c = await create('c\u2028id: 0\n\n', 'sold');
  await create('d', 'pending');
  const e = await create('e', 'sold');
  await live.until(2);
  expect(live.seen).toEqual({ pets: [c, e], failure: undefined });
  live.user.abort();
  await live.ended;
  const texts: unknown[] = [];
  for await (const pet of connected({ ids: 'string' }).added({ ...at, after: `${id}` }))
    if (texts.push(pet) === 2) break;
  const categoryId = '-9223372036854775808';
  expect(texts).toEqual([c, e].map((pet) => ({ ...pet, id: `${pet.id}`, categoryId })));
  await eventually(async () => store.app.subscriptions.count === 0);
});

const animal = (id: string | number, name = 'Rex') =>
  `event: next\nid: ${id}\ndata: {"data":{"petAdded":{"id":"${id}","name":"${name}","categoryId":"5","status":"sold"}}}\n\n`;
const failed = (code: string, extensions: object = {}) =>
  `event: next\ndata: ${JSON.stringify({ errors: [{ message: 'No.', extensions: { code, ...extensions } }] })}\n\nevent: complete\ndata:\n\n`;

/** A connection that brings these pieces, and is lost then. */
const events =
  (...pieces: Array<string | Uint8Array>) =>
  () => {
    const body = new ReadableStream({
      start(stream) {
        for (const piece of pieces) stream.enqueue(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece);
        stream.close();
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
  };
const json = (status: number, code: string) => () =>
  new Response(JSON.stringify({ code, message: 'No.', status }), { status, headers: { 'retry-after': '0' } });
const broken = () => {
  throw new TypeError('fetch failed');
};
const forbidden = events(failed('FORBIDDEN', { status: 403 }));

/** A list whose connections these are in turn, the last one again and again; it ends with `forbidden`. */
async function scripted(connections: Array<() => Response>, options: Partial<AnimalStoreOptions> = {}) {
  const afters: unknown[] = [];
  const client = connected({
    ...options,
    fetch: async (_input, init) => {
      const { variables } = JSON.parse(String(init?.body));
      const connection = connections[Math.min(afters.push(variables.after), connections.length) - 1];
      return (connection as () => Response)();
    },
  });
  const { seen, ended } = followed(() => client.added());
  await ended;
  return { afters, names: seen.pets.map(({ name }) => name), failure: seen.failure };
}

const rex = new TextEncoder().encode(animal(7, 'Réx'));

test.each<[string, Array<() => Response>, unknown[], string[]]>([
  ['a connection that cannot be made', [broken], [undefined], []],
  ['a service that has too many', [json(503, 'SERVICE_UNAVAILABLE')], [undefined], []],
  ['a quota that is spent', [events(failed('TOO_MANY_REQUESTS', { retryAfter: 0 }))], [undefined], []],
  ['a connection that has told where the list began', [events('id: 6\n\n')], ['6'], []],
  ['half an animal', [events('id: 6\n\n', animal(7).slice(0, -1))], ['6'], []],
  ['an animal in two pieces, in the middle of a letter', [events(rex.slice(0, 55), rex.slice(55))], ['7'], ['Réx']],
  ['two in one piece', [events(`id: 6\n\n${animal(7, 'a')}${animal(8, 'b')}`)], ['8'], ['a', 'b']],
  ['heartbeats', [events('id: 6\n\n:\n\n', ':\n\n')], ['6'], []],
  ['an older position than that of the last animal', [events(animal(7)), events('id: 6\n\n')], ['7', '7'], ['Rex']],
])('it goes on after %s', async (_, connections, then, expected) => {
  const { afters, names, failure } = await scripted([...connections, forbidden]);
  expect({ afters, names }).toEqual({ afters: [undefined, ...then], names: expected });
  expect(failure).toMatchObject({ code: 'FORBIDDEN', status: 403 });
});

test.each<[string, () => Response, object]>([
  ['an error of the operation', events(failed('GRAPHQL_VALIDATION_FAILED')), { code: 'GRAPHQL_VALIDATION_FAILED' }],
  ['an animal that is none', events('data: {"data":{"petAdded":null}}\n\n'), { code: 'UNEXPECTED_ANSWER' }],
  ['an id that is none', events(animal('x')), { code: 'UNEXPECTED_ANSWER' }],
  ['the page of something else', () => new Response('<h1>Welcome</h1>'), { code: 'UNEXPECTED_ANSWER', status: 200 }],
  ['a redirect', () => new Response(null, { status: 307 }), { code: 'UNEXPECTED_ANSWER', status: 307 }],
  ['500', json(500, 'INTERNAL_SERVER_ERROR'), { code: 'INTERNAL_SERVER_ERROR', status: 500 }],
])('it ends with %s, and is not tried again', async (_, connection, failure) => {
  const ended = await scripted([connection]);
  expect(ended).toMatchObject({ names: [], afters: [undefined], failure: { name: 'StoreError', ...failure } });
});

const patience = { timeoutMs: 1500, retries: 0 };
test.each<[string, Array<() => Response>, Partial<AnimalStoreOptions>, number | undefined]>([
  ['before the first connection in number: broken ones', [broken], { retries: 2 }, 3],
  ['and refusals', [events(failed('TOO_MANY_REQUESTS', { retryAfter: 0 }))], { retries: 2 }, 3],
  ['later in time: broken ones', [events(animal(6)), broken], patience, undefined],
  ['and those that say nothing', [events(animal(6)), events('id: 6\n\n')], patience, undefined],
])('attempts are limited %s', async (_, connections, options, count) => {
  const { afters, failure } = await scripted(connections, options);
  expect(afters).toHaveLength(count ?? Math.max(afters.length, 2));
  expect(failure).toHaveProperty('name', 'StoreError');
});

describe('the real service', () => {
  test('refuses a wrong key, and a key that is revoked meanwhile', async () => {
    const wrong = followed(() => connected({ key: 'ask_wrong', fetch: counted }).added());
    await wrong.ended;
    expect(requests).toHaveLength(1);
    const { key, id } = await store.keys.issue({ name: 'frontend', scope: 'read' });
    const revoked = followed(() => connected({ key }).added({ after: 0 }));
    const pet = await connected().create({ name: 'Rex', categoryId: 1 });
    await revoked.until(1);
    await store.keys.revoke(id);
    await revoked.ended;
    const failure = expect.objectContaining({ name: 'StoreError', code: 'UNAUTHENTICATED', status: 401 });
    expect(wrong.seen).toEqual({ pets: [], failure });
    expect(revoked.seen).toEqual({ pets: [pet], failure });
  });

  test('has no subscription any more when the caller gives up: while it waits, in the middle of a piece, before', async () => {
    const reason = new Error('no longer wanted');
    const waiting = followed((signal) => connected().added({}, { signal }));
    await eventually(async () => store.app.subscriptions.count === 1);
    waiting.user.abort(reason);
    await waiting.ended;
    expect(waiting.seen.failure).toBe(reason);
    expect(getEventListeners(waiting.user.signal, 'abort')).toEqual([]);
    for (const name of ['a', 'b', 'c']) await connected().create({ name, categoryId: 1 });
    const middle = new AbortController();
    const live = (async () => {
      for await (const { name } of connected().added({ after: 0 }, { signal: middle.signal })) {
        expect(name).toBe('a');
        middle.abort(reason);
      }
    })();
    await expect(live).rejects.toBe(reason);
    const before = followed(() => connected().added({}, { signal: AbortSignal.abort(reason) }));
    await before.ended;
    expect(before.seen.failure).toBe(reason);
    await eventually(async () => store.app.subscriptions.count === 0);
  });
});
