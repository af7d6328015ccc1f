// runs: embedded

import { connect } from 'node:net';
import { sql } from '../../support/database-access.ts';
import {
  follow,
  type LiveApi,
  liveApis,
  type Stream,
  seen,
} from '../../support/events.ts';
import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { type Store, startStore, storeForAll } from '../../support/store.ts';

const plain = storeForAll();
let store: Store = plain;
const open: Stream[] = [];
afterEach(async () => {
  for (const stream of open.splice(0)) stream.close();
  await eventually(async () => store.app.subscriptions.count === 0);
  if (store !== plain) await store.close();
  else await store.empty();
  store = plain;
});
type Given =
  Parameters<typeof follow> extends [unknown, ...infer Rest] ? Rest : never;

describe.each(liveApis)(
  'through $api',
  ({ api, follow, failureIn }: LiveApi) => {
    const subscribe = async (...[variables, more]: Given) => {
      const stream = await follow(store, variables, more);
      open.push(stream);
      return stream;
    };

    describe('a limit', () => {
      test('of subscriptions holds for a key; further clients get Retry-After', async () => {
        store = await startStore({ SUBSCRIPTIONS_PER_KEY: '2' });
        const [first] = [await subscribe(), await subscribe()];
        const third = await subscribe();
        expect([
          third.status,
          third.headers['retry-after'],
          failureIn(third),
        ]).toEqual([
          429,
          '5',
          {
            message:
              'This key has 2 subscriptions open here, which is all it may have; close one first.',
            code: 'TOO_MANY_REQUESTS',
            status: 429,
          },
        ]);
        const { key } = await store.keys.issue({ name: 'other' });
        expect(await subscribe({}, { key })).toMatchObject({ status: 200 });
        first?.close();
        await eventually(async () => (await subscribe()).status === 200);
      });

      test('of subscriptions holds for the process', async () => {
        store = await startStore({ SUBSCRIPTIONS_MAX: '1' });
        await subscribe();
        const second = await subscribe();
        expect([
          second.status,
          second.headers['retry-after'],
          failureIn(second).code,
        ]).toEqual([503, '1', 'SERVICE_UNAVAILABLE']);
      });

      test('of life cuts a subscription off without a complete event, so that its client resumes', async () => {
        store = await startStore({ SUBSCRIPTION_LIFE_MS: '100' });
        const stream = await subscribe();
        expect([await stream.ended, stream.events]).toEqual(['cut', []]);
        await eventually(async () => store.app.subscriptions.count === 0);
      });
    });

    describe('a client that does not read', () => {
      test('has no queue beyond a page, gets everything when it reads on, and is cut off when too much is unread', async () => {
        store = await startStore();
        const count = 15_000;
        const slow = await subscribe({ after: '0' });
        slow.outgoing.socket?.pause();
        const names = `select lpad(n::text, 900, 'x'), 1, 'available' from generate_series(1, $1::int) n`;
        await sql(
          store.database,
          `insert into pet (name, category_id, status) ${names}`,
          [`${count}`],
        );
        const quick = await subscribe({ after: '0' });
        await quick.until(count);
        // The buffers of the kernel are smaller than these fourteen megabytes.
        expect(store.app.subscriptions.delivered).toBeLessThan(2 * count);
        slow.outgoing.socket?.resume();
        await slow.until(count);
        expect(seen(slow)).toEqual(
          Array.from({ length: count }, (_, at) =>
            `${at + 1}`.padStart(900, 'x'),
          ),
        );

        // Other unread responses use up the 128 MiB.
        const unread = await subscribe({ after: '0' });
        unread.outgoing.socket?.pause();
        store.app.unread.budget.add('others', 128 * 1024 * 1024);
        await eventually(async () => store.app.subscriptions.count === 2);
        unread.outgoing.socket?.resume();
        expect(await unread.ended).toBe('cut');
      });

      test('and disconnects has no subscription left', async () => {
        // A machine that is still busy with the test before refuses
        // subscriptions.
        await eventually(async () => (await subscribe()).status === 200);
        const { outgoing } = open.at(-1) as Stream;
        outgoing.socket?.pause();
        expect(store.app.subscriptions.count).toBe(1);
        outgoing.destroy();
        await eventually(async () => store.app.subscriptions.count === 0);
      });
    });

    test('a client that disconnects while its subscription opens has no subscription left', async () => {
      const { port } = new URL(store.origin);
      const body =
        api === 'GraphQL'
          ? JSON.stringify({ query: 'subscription { petAdded { id } }' })
          : '';
      const line = api === 'GraphQL' ? 'POST /graphql' : 'GET /v1/pets';
      const headers = `Host: store.example\r\nAuthorization: Bearer ${store.key}\r\nContent-Type: application/json\r\n`;
      const request = `${line} HTTP/1.1\r\n${headers}Accept: text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const { app } = store;
      for (let turns = 0; turns < 100; turns += 1) {
        const socket = connect(Number(port), '127.0.0.1').on(
          'error',
          () => undefined,
        );
        socket.write(request);
        // The service runs in this event loop: each client leaves one turn
        // later than the one before.
        for (let turn = 0; turn < turns; turn += 1)
          await new Promise(setImmediate);
        socket.destroy();
      }
      await eventually(async () => app.activeRequests.count === 0);
      expect(app.subscriptions.count).toBe(0);
    });
  },
);
