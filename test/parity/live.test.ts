// runs: embedded, postgres

import { sql, whileReadsFail, withRows } from '../support/database-access.ts';
import {
  type LiveApi,
  liveApis,
  openStream,
  seen,
  streamsForEach,
} from '../support/events.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * Live lists: the subscription of GraphQL and the list of REST with `Accept:
 * text/event-stream`.
 */

const store = storeForAll({ CORS_ORIGINS: 'https://app.example' });
const closedAfterwards = streamsForEach(store);
const create = async (name: string, more: object = {}) =>
  (
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name, categoryId: 5, ...more },
    })
  ).json;
const eventStream = 'text/event-stream; charset=utf-8';

describe.each(liveApis)(
  'through $api',
  ({ follow, petEvent, end, failureIn }: LiveApi) => {
    const following = (
      ...given: Parameters<typeof follow> extends [unknown, ...infer Rest]
        ? Rest
        : never
    ) => closedAfterwards(follow(store, ...given));

    test('without a position each animal that is added from now on is sent, whole, with its id, and uncompressed', async () => {
      await create('before');
      const stream = await following(
        {},
        {
          headers: {
            'accept-encoding': 'gzip, br',
            origin: 'https://app.example',
          },
        },
      );
      const pets = [
        await create('first', { categoryId: 9223372036854775807n }),
        await create('"\\\n\u2028\ud83d\udc08', {
          categoryId: 9007199254740993n,
          status: 'sold',
        }),
      ];
      expect(await stream.until(2)).toEqual(pets.map(petEvent));
      expect([stream.status, stream.headers['content-type']]).toEqual([
        200,
        eventStream,
      ]);
      expect(stream.headers).toMatchObject({
        'access-control-allow-origin': 'https://app.example',
        'cache-control': 'no-store, no-transform',
        'x-accel-buffering': 'no',
        'x-content-type-options': 'nosniff',
        'content-security-policy':
          expect.stringContaining("default-src 'none'"),
        'x-request-id': expect.any(String),
      });
      expect(stream.headers).not.toHaveProperty('content-encoding');
      expect(stream.headers).not.toHaveProperty('etag');
    });

    test('only animals with a status are sent: those after an id, then each that is added', async () => {
      const ids = [];
      for (const status of ['sold', 'available', 'sold'])
        ids.push((await create(status, { status })).id);
      const stream = await following({
        after: `${ids[0]}`,
        status: 'sold' as never,
      });
      await create('available');
      const last = await create('last', { status: 'sold' });
      await stream.until(2);
      expect(seen(stream, 'id').map(String)).toEqual([
        `${ids[2]}`,
        `${last.id}`,
      ]);
    });

    test('Last-Event-ID is sent at once; a client that sends it back continues there, not at its `after`', async () => {
      const { id } = await create('a');
      const stream = await following();
      await eventually(async () => stream.lastEventId !== undefined);
      expect([stream.lastEventId, stream.events]).toEqual([`${id}`, []]);
      stream.close();
      await create('meanwhile');
      const resumed = await following(
        { after: '0' },
        { headers: { 'last-event-id': `${id}` } },
      );
      await resumed.until(1);
      expect(seen(resumed)).toEqual(['meanwhile']);
    });

    test('while the database does not answer, a stream waits, and it continues without a gap', async () => {
      const stream = await following({ after: '0' });
      await create('before');
      await stream.until(1);
      // While reads fail, the stream stays open and sends comments, so that no
      // proxy closes it.
      await whileReadsFail(store.database, '57P03', async () => {
        await eventually(
          async () => (await rest(store, '/v1/pets')).status === 503,
        );
        const monotonic = performance.now;
        performance.now = () => monotonic.call(performance) + 10_000;
        try {
          await eventually(async () => stream.comments > 0);
        } finally {
          performance.now = monotonic;
        }
      });
      await create('after');
      await stream.until(2);
      expect(seen(stream)).toEqual(['before', 'after']);
    });

    test.each([
      ['revoked', (id: number) => store.keys.revoke(id)],
      [
        'expired',
        (id: number) =>
          sql(
            store.database,
            'update api_key set expires_at = now() where id = $1',
            [id],
          ),
      ],
    ])(
      'a key that is %s ends its streams with the reason, but no others',
      async (what, finish) => {
        const { id, key } = await store.keys.issue({
          name: what,
          scope: 'read',
        });
        const [ended, other] = [
          await following({}, { key }),
          await following(),
        ];
        await finish(id);
        expect(await ended.ended).toBe('whole');
        const failure = {
          code: 'UNAUTHENTICATED',
          message: 'The API key is not valid.',
          status: 401,
        };
        expect(ended.events).toEqual(end(failure));
        await create('after');
        await other.until(1);
        expect([seen(other), seen(ended)]).toEqual([['after'], []]);
      },
    );

    const drain = () => {
      store.app.isDraining = true;
    };
    test.each([
      ['drains', drain, () => undefined],
      [
        'begins to drain while it reads the position of one',
        () => undefined,
        drain,
      ],
    ])(
      'a service that %s opens no stream, and says when to try again',
      async (_, before, meanwhile) => {
        before();
        const stream = await withRows(
          store.database,
          (rows) =>
            async (...statement) => {
              meanwhile();
              return rows(...statement) as never;
            },
          () => following(),
        );
        store.app.isDraining = false;
        const { status, headers } = stream;
        expect([status, headers['retry-after']]).toEqual([503, '1']);
        await stream.ended;
        expect(failureIn(stream)).toEqual({
          code: 'SERVICE_UNAVAILABLE',
          message: 'The service is shutting down; subscribe again shortly.',
          status: 503,
        });
      },
    );
  },
);

test('streams of both APIs at one position share a page, and each has its own format', async () => {
  const streams = await Promise.all(
    liveApis.map(({ follow }) =>
      closedAfterwards(follow(store, { after: '0' })),
    ),
  );
  const pet = await create('Rex');
  for (const [at, stream] of streams.entries())
    expect(await stream.until(1)).toEqual([liveApis[at]?.petEvent(pet)]);
});

describe('HEAD', () => {
  test.each([
    `/graphql?query=${encodeURIComponent('subscription { petAdded { id } }')}`,
    '/v1/pets',
  ])(
    'of the stream at %s has its headers, without a length, and no stream stays open',
    async (path) => {
      const head = await openStream(store, { method: 'HEAD', path });
      expect(await head.ended).toBe('whole');
      expect([head.status, head.headers['content-type'], head.text]).toEqual([
        200,
        eventStream,
        '',
      ]);
      expect(head.headers).not.toHaveProperty('content-length');
      await eventually(async () => store.app.subscriptions.count === 0);
    },
  );
});
