import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { graphqlText } from '../../support/graphql.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({}, undefined, { more: [ledgersModule] });
type Request = {
  method?: string;
  json?: unknown;
  headers?: object;
  key?: string;
};
const ask = (path: string, request: Request = {}) =>
  rest(store, `/v1${path}`, request as never);
const post = (path: string, json: object, more: Request = {}) =>
  ask(path, { method: 'POST', json, ...more });
const change = (path: string, json: object, more: Request = {}) =>
  ask(path, { method: 'PATCH', json, ...more });
const remove = (path: string, more: Request = {}) =>
  ask(path, { method: 'DELETE', ...more });

let title = 0;
const entry = () => ({ title: `entry ${++title}`, amount: '1.5', number: 1 });
const rest0 = { at: null, day: null, ratio: null, isPaid: null, data: null };
const blank = { ...rest0, tags: null };

/** The position of the last change. */
async function position() {
  const { json } = await ask('/changes?sort=id_desc&limit=1');
  return json[0]?.id ?? 0;
}

/** Runs work, and gives the changes that it leaves. */
async function changesOf(work: () => Promise<unknown>, key?: string) {
  const after = await position();
  await work();
  const { json } = await ask(`/changes?after=${after}`, { key: key as string });
  return json as any[];
}
const short = ({ action, itemId, version, before, after }: any) => [
  action,
  itemId,
  version,
  before,
  after,
];

describe('changes', () => {
  test('say who has created, changed and removed an item, and what differs', async () => {
    const headers = { 'x-request-id': 'first-request' };
    const created = entry();
    let id: unknown;
    const all = await changesOf(async () => {
      const { json } = await post('/entries', created, { headers });
      id = json.id;
      await change(`/entries/${id}`, { version: 1, amount: '2', number: 1 });
      await remove(`/entries/${id}?version=2`);
    });
    const [first] = all;
    expect(first).toEqual({
      id: first.id,
      collection: 'entries',
      itemId: id,
      action: 'created',
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
      actor: 'key:1',
      tenant: null,
      request: 'first-request',
      before: null,
      after: { ...blank, ...created, amount: '1.50' },
      version: 1,
    });
    expect(all.map(short)).toEqual([
      ['created', id, 1, null, first.after],
      ['changed', id, 2, { amount: '1.50' }, { amount: '2.00' }],
      ['removed', id, 2, { ...first.after, amount: '2.00' }, null],
    ]);
  });

  test('have the values of an answer, exact', async () => {
    const values = {
      number: 9223372036854775807n,
      at: '2026-01-02T03:04:05.678Z',
      day: '0001-01-01',
      ratio: 1e-7,
      isPaid: false,
      data: { big: 9007199254740993n, list: [null, 'x', { y: [] }], '': 0.1 },
      tags: ['a,b', '"', '\\', 'null', ''],
    };
    const long = `${'\u{1f436}\n"\\'.repeat(200)}`;
    const input = { ...entry(), ...values, title: long };
    const [one] = await changesOf(() => post('/entries', input));
    expect(one.after).toEqual({ ...input, amount: '1.50' });
    const cleared = { at: null, day: null, data: null, tags: null };
    const set = { number: -9223372036854775808n, ratio: 5, isPaid: null };
    const [next] = await changesOf(() =>
      change(`/entries/${one.itemId}`, { version: 1, ...cleared, ...set }),
    );
    const { isPaid, ratio, number, at, day, data, tags } = values;
    expect(next.before).toEqual({ isPaid, ratio, number, at, day, data, tags });
    expect(next.after).toEqual({ ...cleared, ...set });
  });

  test('leave out a member, and tell of a change that changes nothing', async () => {
    const input = { ...entry(), note: 'secret' };
    const { json } = await post('/entries', input);
    const path = `/entries/${json.id}`;
    const all = await changesOf(async () => {
      await change(path, { version: 1, note: 'other' });
      await change(path, { version: 2, title: input.title });
      await change(path, { version: 3, note: null, number: 2 });
    });
    expect(all.map(short)).toEqual([
      ['changed', json.id, 2, {}, {}],
      ['changed', json.id, 3, {}, {}],
      ['changed', json.id, 4, { number: 1 }, { number: 2 }],
    ]);
  });

  test('do not tell of what did not happen', async () => {
    const { json } = await post('/entries', entry());
    const all = await changesOf(async () => {
      const path = `/entries/${json.id}`;
      const statuses = [
        await change(path, { version: 7, amount: '3' }),
        await remove(`${path}?version=7`),
        await remove('/entries/9223372036854775807'),
        await change('/entries/9223372036854775807', { version: 1, number: 1 }),
        await post('/entries', { ...entry(), title: json.title }),
        await post('/bookings', { title: 'refused' }),
      ].map(({ status }) => status);
      expect(statuses).toEqual([409, 409, 404, 404, 409, 400]);
    });
    expect(all).toEqual([]);
  });

  test('tell of each item of a batch, but not of those that are refused', async () => {
    const taken = entry();
    await post('/entries', taken);
    const inputs = [
      entry(),
      taken,
      entry(),
      { ...entry(), number: 'x' },
      entry(),
    ];
    const all = await changesOf(() => post('/entries/batch', { inputs }));
    expect(all.map(({ after }) => after.title)).toEqual(
      [inputs[0], inputs[2], inputs[4]].map((one) => one?.title),
    );
    const shared = [entry(), taken, entry(), entry(), taken, entry()];
    const several = await changesOf(() =>
      Promise.all(shared.map((one) => post('/entries', one))),
    );
    expect(several.map(({ after }) => after.title).sort()).toEqual(
      shared
        .filter((one) => one !== taken)
        .map((one) => one.title)
        .sort(),
    );
    const ids = several.map(({ itemId }) => itemId);
    expect(ids).toEqual(ids.toSorted((a: number, b: number) => a - b));
  });

  test('tell once of a repeated creation, and of each writer in a shared statement', async () => {
    const { key, id } = await store.keys.issue({ name: 'other' });
    const all = await changesOf(async () => {
      const input = entry();
      const headers = { 'idempotency-key': '"once"' };
      const same = () => post('/entries', input, { headers });
      await Promise.all([
        same(),
        post('/entries', entry(), { key }),
        same(),
        post('/entries', entry()),
      ]);
      await same();
    });
    expect(all.map(({ actor }) => actor).sort()).toEqual(
      ['key:1', 'key:1', `key:${id}`].sort(),
    );
  });

  test('of a transaction are those of its request', async () => {
    const headers = {
      'idempotency-key': '"booking"',
      'x-request-id': 'booked',
    };
    const book = () => post('/bookings', { title: 'booking' }, { headers });
    const all = await changesOf(async () => {
      await book();
      await book();
    });
    expect(
      all.map(({ action, request, after }) => [
        action,
        request,
        after.title ?? after,
      ]),
    ).toEqual([
      ['created', 'booked', 'booking 1'],
      ['created', 'booked', 'booking 2'],
      ['changed', 'booked', { amount: '2.00' }],
    ]);
  });

  test('are filtered by collection, item and actor', async () => {
    const { json } = await post('/memos', { text: 'mine' });
    const item = `collection=memos&itemId=${json.id}`;
    const [one] = (await ask(`/changes?${item}`)).json;
    expect((await ask(`/changes?collection=memos`)).json).toEqual([one]);
    expect(
      (await ask('/changes?actor=key:1&sort=id_desc&limit=1')).json,
    ).toEqual([one]);
    expect((await ask('/changes?actor=key:9')).json).toEqual([]);
    const { json: refusal } = await ask('/changes?itemId=1');
    expect(refusal).toMatchObject({
      status: 400,
      message:
        'A list cannot be filtered by itemId: only by collection, or by collection with itemId, or by actor.',
    });
    const query = `{ changes(collection: "memos") { id itemId action after actor } }`;
    const { data } = await graphqlText(store, { query });
    expect(data).toEqual({
      changes: [
        {
          id: `${one.id}`,
          itemId: `${one.itemId}`,
          action: 'created',
          after: one.after,
          actor: 'key:1',
        },
      ],
    });
  });
});
