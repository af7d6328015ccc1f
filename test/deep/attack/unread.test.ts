import { connect } from 'node:net';
import { serialiseOnce, shared } from '#engine/records/lists/reader.js';
import { createOwnDatabase } from '../../support/database.ts';
import { stockNames } from '../../support/database-access.ts';
import { follow, seen } from '../../support/events.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { bootstrapKey, killAll, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * Large answers for few bytes: names whose characters have six bytes each in
 * JSON.
 */

const store = storeForAll();
afterEach(killAll);

const name = '\u0001'.repeat(1000);
const times = (count: number, text: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => text(at)).join(' ');

test.each(['text/event-stream', 'multipart/mixed;subscriptionSpec=1.0'])(
  'a hundred clients that never read %s, with a document each, do not end a process with a heap of 512 MB',
  async (accept) => {
    const own = await createOwnDatabase();
    const server = await startServer({
      ...own.env,
      BOOTSTRAP_API_KEY: bootstrapKey,
      NODE_OPTIONS: '--max-old-space-size=512',
      LOG_LEVEL: 'error',
    });
    for (let at = 0; at < 100; at += 1) {
      await rest(server, '/v1/pets', {
        method: 'POST',
        json: { name, categoryId: 1 },
      });
    }
    const head = `Host: a\r\nAuthorization: Bearer ${bootstrapKey}\r\nContent-Type: application/json\r\nAccept: ${accept}`;
    const sockets = Array.from({ length: 99 }, (_, at) => {
      const query = `subscription { petAdded(after: "0") { b${at}: name name ${times(48, (copy) => `c${copy}: name`)} } }`;
      const body = JSON.stringify({ query });
      const socket = connect(
        Number(new URL(server.origin).port),
        '127.0.0.1',
      ).on('error', () => undefined);
      socket
        .pause()
        .write(
          `POST /graphql HTTP/1.1\r\n${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      return socket;
    });
    // A client that reads may be cut, and resumes.
    const ids: unknown[] = [];
    while (ids.length < 100) {
      const stream = await follow(
        server,
        {},
        { headers: { 'last-event-id': `${ids.at(-1) ?? 0}` } },
      );
      await Promise.race([stream.ended, stream.until(100 - ids.length)]);
      ids.push(...seen(stream, 'id'));
      stream.close();
    }
    expect(new Set(ids).size).toBe(100);
    expect((await rest(server, '/v1/pets?limit=1')).status).toBe(200);
    expect(server.child.exitCode).toBeNull();
    for (const socket of sockets) socket.destroy();
  },
);

test('shared items keep the results of the last documents only, because each may have megabytes', () => {
  const items = shared([{ id: 1 }]);
  let made = 0;
  const serialise = () => {
    made += 1;
    return made;
  };
  const once = (document: number) => serialiseOnce(items, document, serialise);
  expect([1, 2, 3, 4, 5, 5, 4, 1].map(once)).toEqual([1, 2, 3, 4, 5, 5, 4, 6]);
});

test.each(['application/json', 'text/event-stream'])(
  'large answers of %s that are due at once are made one after another, and others are served in between',
  async (accept) => {
    await stockNames(store.database, Array(100).fill(name));
    let turns = 0;
    let isOver = false;
    const countTurns = () => {
      turns += 1;
      if (!isOver) setImmediate(countTurns);
    };
    countTurns();
    const headers = {
      authorization: `Bearer ${store.key}`,
      accept,
      'accept-encoding': 'identity',
    };
    const payload = { query: '{ pets(limit: 100) { name } }' };
    const answers = Array.from({ length: 8 }, async () => {
      const { statusCode } = await store.app.inject({
        method: 'POST',
        url: '/graphql',
        headers,
        payload,
      });
      return { statusCode, turns };
    });
    const seen = await Promise.all(answers);
    isOver = true;
    expect(seen.map(({ statusCode }) => statusCode)).toEqual(
      Array(8).fill(200),
    );
    expect(new Set(seen.map((one) => one.turns)).size).toBe(8);
  },
);
