// runs: embedded, postgres, pgbouncer, postgres-12, postgres-18

import { Call } from '#engine/call.js';
import { Records } from '#engine/records/records.js';
import {
  EntryEntity,
  entry as entryResource,
  ledgersModule,
} from '../../modules/ledgers/ledgers.module.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** `Prefer: tx=rollback`: the whole path, rolled back. */

const store = storeForAll({}, undefined, { more: [ledgersModule] });
const prefer = { prefer: 'tx=rollback' };
const send = (
  path: string,
  json?: object,
  headers: object = prefer,
  method = 'POST',
) => rest(store, `/v1${path}`, { method, json, headers } as never);
const mutate = (query: string, headers: Record<string, string> = prefer) =>
  graphqlText(store, { query: `mutation { ${query} }` }, undefined, headers);
const entry = (title: string) => ({ title, amount: '1.00', number: 1 });
const all = async () => {
  const [entries, changes] = await Promise.all(
    ['/v1/entries', '/v1/changes'].map((path) => rest(store, path)),
  );
  return [entries?.json, changes?.json];
};
let stored: any;
let count = 0;
beforeEach(async () => {
  const { json } = await send('/entries', entry(`stored ${++count}`), {});
  stored = json;
});

describe('a trial stores nothing', () => {
  test('on REST', async () => {
    const before = await all();
    const { id } = stored;
    const change = { version: 1, amount: '2.00' };
    const path = `/entries/${id}`;
    const inputs = [entry('a'), entry('b'), entry(stored.title)];
    const trials = [
      await send('/entries', entry('tried')),
      await send(path, change, prefer, 'PATCH'),
      await send(path, undefined, prefer, 'DELETE'),
      await send('/entries/batch', { inputs }),
      await send('/bookings', { title: 'tried' }),
    ];
    expect(trials.map(({ status }) => status)).toEqual([
      201, 200, 204, 200, 201,
    ]);
    for (const { headers } of trials)
      expect(headers['preference-applied']).toBe('tx=rollback');
    const [created, changed, , batch, booked] = trials.map(({ json }) => json);
    expect(created).toMatchObject({ title: 'tried', version: 1 });
    expect(changed).toEqual({ ...stored, amount: '2.00', version: 2 });
    expect(batch).toMatchObject([
      { item: { title: 'a' } },
      { item: { title: 'b' } },
      { error: { code: 'CONFLICT' } },
    ]);
    expect(booked).toEqual({ booked: 2 });
    expect(await all()).toEqual(before);
  });

  test('on GraphQL', async () => {
    const before = await all();
    const input = (title: string) =>
      `{ title: "${title}", amount: "1.00", number: "1" }`;
    const { id } = stored;
    const answer = await mutate(
      `a: createEntry(input: ${input('tried')}) { title }
       b: createEntries(inputs: [${input('c')}, ${input('d')}]) { title }
       c: changeEntry(id: "${id}", change: { version: 1, amount: "2.00" }) { amount version }
       d: removeEntry(id: "${id}")
       e: bookTwice(input: { title: "tried" }) { booked }`,
    );
    expect(answer.headers['preference-applied']).toBe('tx=rollback');
    expect(answer.data).toEqual({
      a: { title: 'tried' },
      b: [{ title: 'c' }, { title: 'd' }],
      c: { amount: '2.00', version: 2 },
      d: true,
      e: { booked: 2 },
    });
    expect(await all()).toEqual(before);
  });
});

test('a trial is refused as the real one', async () => {
  const { id, title } = stored;
  const trials = [
    await send('/entries', entry(title)),
    await send('/entries', { title }),
    await send(`/entries/${id}`, { version: 7, number: 2 }, prefer, 'PATCH'),
    await send('/entries/9223372036854775807', undefined, prefer, 'DELETE'),
    await send('/bookings', { title: 'refused' }),
  ];
  expect(trials.map(({ status }) => status)).toEqual([409, 400, 409, 404, 400]);
  const { errors } = await mutate(
    `createEntry(input: { title: "${title}", amount: "1", number: "1" }) { id }`,
  );
  expect(errors?.[0]?.extensions?.code).toBe('CONFLICT');
});

test('a trial of a change creates rows, as its rule does', async () => {
  const entries = new Records<any, any>(store.database, EntryEntity, {
    ...entryResource.lists,
    async check(_members, call, before) {
      if (before) await entries.create(entry('by a rule'), call);
    },
  });
  const before = await all();
  const call = new Call();
  call.onRolledBack = () => undefined;
  const change = { version: 1, amount: '2.00' };
  const changed = await entries.change(stored.id, change as never, call);
  expect(changed).toMatchObject({ amount: '2.00', version: 2 });
  expect(await all()).toEqual(before);
});

test('a trial of which all inputs are refused says that nothing is stored', async () => {
  for (const input of [{ title: 'no' }, entry(stored.title)]) {
    const several = { inputs: [input, input] };
    const { json, headers } = await send('/entries/batch', several);
    expect(json).toMatchObject([{ error: {} }, { error: {} }]);
    expect(headers['preference-applied']).toBe('tx=rollback');
  }
});

test('a trial claims no idempotency key', async () => {
  const key = (name: string) => ({ 'idempotency-key': `"${name}"` });
  for (const [path, name] of [
    ['/entries', 'entry'],
    ['/bookings', 'booking'],
  ] as const) {
    const json = { ...entry(`with ${name}`) };
    const headers = { ...prefer, ...key(name) };
    const tried = await send(path, json, headers);
    expect(tried.headers).not.toHaveProperty('idempotent-replayed');
    const real = await send(
      path,
      { ...json, title: `real ${name}` },
      key(name),
    );
    expect([tried.status, real.status]).toEqual([real.status, tried.status]);
    expect(real.headers).not.toHaveProperty('idempotent-replayed');
  }
});

test('strict clients may ask for one, in a request that writes', async () => {
  const strict = { prefer: 'handling=strict, tx=rollback' };
  const tried = await send('/entries', entry('strict'), strict);
  expect(tried.headers['preference-applied']).toBe(
    'handling=strict, tx=rollback',
  );
  const read = await rest(store, '/v1/entries', { headers: strict });
  expect(read).toMatchObject({ status: 400 });
  const commit = { prefer: 'tx=commit' };
  const { headers } = await send('/entries', entry('commit'), commit);
  expect(headers).not.toHaveProperty('preference-applied');
});

test('no live list tells of a trial', async () => {
  const path = '/v1/entries';
  const stream = await openStream(store, { method: 'GET', path });
  await send('/entries', entry('unseen'));
  const { json } = await send('/entries', entry('seen'), {});
  const [first] = await stream.until(1);
  stream.close();
  expect(first?.data).toEqual(json);
});
