import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Why requests were cut. */
const cuts: unknown[] = [];
const request = {
  ended: ({ call }: { call: { cut?: unknown } }) => cuts.push(call.cut),
};
const names =
  "select repeat(chr(1), 1000), 1, 'available' from generate_series(1, 100)";
const store = storeForAll(
  {
    SLOW_READER_TIMEOUT_MS: '200',
    KEEP_ALIVE_TIMEOUT_MS: '600000',
    REQUEST_TIMEOUT_MS: '600000',
  },
  () =>
    sql(store.database, `insert into pet (name, category_id, status) ${names}`),
  { observers: [{ request }] },
);

const copies = Array.from({ length: 48 }, (_, at) => `c${at}: name`).join(' ');

test.each([
  ['an answer', `{ pets(limit: 100) { ${copies} } }`],
  ['a live list', `subscription { petAdded(after: "0") { ${copies} } }`],
])(
  'a client that reads nothing of %s is cut off, whatever the limits of connections are',
  async (_what, query) => {
    cuts.length = 0;
    const stream = await openStream(store, { body: { query } });
    stream.outgoing.socket?.pause();
    await eventually(async () => cuts.length > 0);
    expect(cuts).toEqual(['slow']);
    stream.close();
  },
);

test('a client that reads all of a quiet live list is not cut off', async () => {
  cuts.length = 0;
  const query = 'subscription { petAdded { name } }';
  const quiet = await openStream(store, { body: { query } });
  // It is cut later than the other one would be.
  const all = `subscription { petAdded(after: "0") { ${copies} } }`;
  const slow = await openStream(store, { body: { query: all } });
  slow.outgoing.socket?.pause();
  await eventually(async () => cuts.length > 0);
  await rest(store, '/v1/pets', {
    method: 'POST',
    json: { name: 'Rex', categoryId: 1 },
  });
  const found = await Promise.race([quiet.ended, quiet.until(1)]);
  const data = { data: { petAdded: { name: 'Rex' } } };
  expect(found).toMatchObject([{ data }]);
  quiet.close();
  slow.close();
  // Both lists and the creation have ended.
  await eventually(async () => cuts.length > 2);
});
