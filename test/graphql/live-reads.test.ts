// runs: embedded, postgres

import type { Call } from '#engine/call.js';
import { StoreError, Unavailable } from '#engine/errors.js';
import { practiceModule } from '../modules/practice/practice.module.ts';
import { withRows } from '../support/database-access.ts';
import { openStream, type Stream, streamsForEach } from '../support/events.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Live lists whose events read more than their item. */

const calls: Call[] = [];
const request = {
  began: ({ call }: { call: Call }) => calls.push(call),
  ended: () => undefined,
};
const store = storeForAll({}, undefined, {
  more: [practiceModule],
  observers: [{ request }],
});
const closedAfterwards = streamsForEach(store);
beforeEach(() => {
  calls.length = 0;
});

const query = 'subscription { ownerAdded { id visits(limit: 1) { id } } }';
const followOwners = (last?: string, key = store.key) =>
  closedAfterwards(
    openStream(store, {
      key,
      body: { query },
      ...(last && { headers: { 'last-event-id': last } }),
    }),
  );
let count = 0;
async function addOwner(): Promise<string> {
  count += 1;
  const json = { name: 'Ada', email: `${count}@example.org` };
  const added = await rest(store, '/v1/owners', { method: 'POST', json });
  return `${added.json.id}`;
}
const eventOf = (id: string) => ({
  event: 'next',
  id,
  data: { data: { ownerAdded: { id, visits: [] } } },
});

/** Runs work while the first read of visits fails. */
function whileFirstReadFails(failure: Error, work: () => Promise<void>) {
  let isFirst = true;
  return withRows(
    store.database,
    (rows) => async (statement, values) => {
      const fails = isFirst && /"visit"/.test(statement.text);
      if (fails) isFirst = false;
      if (fails) throw failure;
      return rows(statement, values) as never;
    },
    work,
  );
}

test('events reach all live lists of a key when the deadlines of their requests are over', async () => {
  const streams: Stream[] = [];
  for (let at = 0; at < 3; at += 1) streams.push(await followOwners());
  const before = await addOwner();
  for (const stream of streams)
    expect(await stream.until(1)).toEqual([eventOf(before)]);
  for (const call of calls) call.deadline = 0;
  const after = await addOwner();
  for (const stream of streams)
    expect(await stream.until(2)).toEqual([eventOf(before), eventOf(after)]);
});

test('a live list ends before an event whose read fails, and a client that resumes gets it whole', async () => {
  const stream = await followOwners();
  const first = await addOwner();
  await stream.until(1);
  let second = '';
  await whileFirstReadFails(Unavailable.late(), async () => {
    second = await addOwner();
    expect(await stream.ended).toBe('cut');
  });
  expect(stream.events).toEqual([eventOf(first)]);
  const third = await addOwner();
  const resumed = await followOwners(stream.lastEventId);
  expect(await resumed.until(2)).toEqual([eventOf(second), eventOf(third)]);
});

test('a live list ends when its key is revoked, and sends no more of what it had to read', async () => {
  const { id, key } = await store.keys.issue({ name: 'other' });
  const stream = await followOwners(undefined, key);
  let release = (): void => undefined;
  const isReleased = new Promise<void>((done) => {
    release = done;
  });
  let isReading = false;
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      const isOfVisits = /"visit"/.test(statement.text);
      isReading ||= isOfVisits;
      if (isOfVisits) await isReleased;
      return rows(statement, values) as never;
    },
    async () => {
      await addOwner();
      await addOwner();
      await eventually(async () => isReading);
      await store.keys.revoke(id);
      expect(await stream.ended).toBe('whole');
      release();
    },
  );
  const code = expect.objectContaining({ code: 'UNAUTHENTICATED' });
  expect(stream.events).toMatchObject([
    { data: { errors: [{ extensions: code }] } },
    { event: 'complete' },
  ]);
});

test('an event that fails for good is sent once, with its error', async () => {
  const stream = await followOwners();
  const refusal = new StoreError('FORBIDDEN', 'Not these.');
  let first = '';
  await whileFirstReadFails(refusal, async () => {
    first = await addOwner();
    await stream.until(1);
  });
  const second = await addOwner();
  const [failed, next] = await stream.until(2);
  expect(failed).toMatchObject({
    id: first,
    data: { errors: [{ message: 'Not these.' }] },
  });
  expect(next).toEqual(eventOf(second));
});

test('each live list continues after `Last-Event-ID`, in a collection with an order, too', async () => {
  const fields = store.app.graphqlSchema.getSubscriptionType()?.getFields();
  const names = Object.keys(fields ?? {});
  expect(names).toEqual(expect.arrayContaining(['ownerAdded', 'visitAdded']));
  for (const name of names) {
    const body = { query: `subscription { ${name} { __typename } }` };
    const headers = { 'last-event-id': '9223372036854775807' };
    const stream = await closedAfterwards(openStream(store, { body, headers }));
    await eventually(async () => stream.text !== '');
    expect(stream.text).toBe('id: 9223372036854775807\n\n');
  }
});
