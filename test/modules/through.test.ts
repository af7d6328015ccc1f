// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { resource } from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeAll, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import {
  BoatEntity,
  boat,
  boatsModule,
  createdBy,
  SkipperEntity,
} from './through/through.module.ts';

/** Lists filtered and sorted by members of what a relation refers to. */

const store = storeForAll({}, undefined, { more: [boatsModule] });

const ask = async (path: string, method = 'GET', json?: object, headers = {}) =>
  rest(store, `/v1${path}`, { method, json, headers });
const page = async (path: string) => {
  const { json, headers } = await ask(path);
  expect(json).toEqual(expect.any(Array));
  return { items: json as any[], headers };
};
const query = async (text: string) => graphqlText(store, { query: text });
const idsOf = (items: any[]) => items.map(({ id }) => Number(id));

const skipper = (at: number) => ({
  name: ['Ada', 'bob', 'ADA', 'Émile', 'Zoë', ''][at % 6],
  born: `19${50 + (at % 4)}-05-0${1 + (at % 3)}T10:00:00.00${at % 7}Z`,
  fee: ['10.5', '9', '100.25', '-1', '0'][at % 5],
  number: [9007199254740993n, 2n, -9223372036854775000n][at % 3],
  isAway: at % 2 === 0,
  rank: at % 3 === 0 ? 'captain' : 'mate',
  nick: at % 4 === 0 ? null : `n${at % 3}`,
});
const skippers = () =>
  ask('/skippers?limit=100').then(({ json }) => json as any[]);
const boats = () => ask('/boats?limit=100').then(({ json }) => json as any[]);

beforeAll(async () => {
  for (let at = 0; at < 12; at += 1)
    await ask('/skippers', 'POST', skipper(at));
  for (let at = 0; at < 60; at += 1) {
    const skipperId = at % 5 === 0 ? null : 1 + ((at * 7) % 12);
    const mateId = at % 3 === 0 ? null : 1 + ((at * 5) % 12);
    const tenderOfId = at < 10 || at % 4 === 0 ? null : (at % 9) + 1;
    const name = `boat ${at % 13}`;
    await ask('/boats', 'POST', { name, skipperId, mateId, tenderOfId });
  }
});

/** Each boat with what it refers to, written anew. */
async function expected() {
  const byId = new Map((await skippers()).map((one) => [one.id, one]));
  const all = await boats();
  const boatById = new Map(all.map((one) => [one.id, one]));
  return all.map((one) => {
    const { name, ...others } = byId.get(one.skipperId) ?? {};
    return {
      ...one,
      skipper_name: name ?? null,
      skipper_born: others.born ?? null,
      skipper_fee: others.fee ?? null,
      skipper_number: others.number ?? null,
      skipper_isAway: others.isAway ?? null,
      skipper_rank: others.rank ?? null,
      skipper_nick: others.nick ?? null,
      mate_name: byId.get(one.mateId)?.name ?? null,
      ship_name: boatById.get(one.tenderOfId)?.name ?? null,
    };
  });
}

const comparable: Record<string, (value: any) => any> = {
  skipper_born: (value) => Date.parse(value),
  skipper_fee: Number,
  skipper_number: BigInt,
  skipper_isAway: Number,
  skipper_rank: String,
};
/** In lower case, by code points. */
const folded = (value: string) =>
  Buffer.from(value.toLowerCase()).toString('hex');

const keyOf = (member: string, row: any) => {
  const value = row[member];
  return value === null ? null : (comparable[member] ?? folded)(value);
};
function inOrder(rows: any[], member: string) {
  return rows.toSorted((one, other) => {
    const [a, b] = [keyOf(member, one), keyOf(member, other)];
    if (a === b) return Number(one.id) - Number(other.id);
    if (a === null) return 1;
    if (b === null) return -1;
    return a < b ? -1 : 1;
  });
}

async function walked(path: string) {
  const ids: number[] = [];
  let next: string | undefined = `/boats?limit=7&${path}`;
  while (next) {
    const { items, headers } = await page(next);
    ids.push(...idsOf(items));
    const link = /<[^>]*\/v1([^>]*)>; rel="next"/.exec(`${headers.link}`);
    next = link?.[1];
  }
  return ids;
}

async function backwards(sort: string, filters = '') {
  const ids: number[] = [];
  let before = '';
  for (;;) {
    const { data, errors } = await query(
      `{ boatsConnection(last: 7, sort: ${sort}${filters}${before}) { nodes { id } pageInfo { startCursor hasPreviousPage } } }`,
    );
    expect(errors).toBeUndefined();
    const { nodes, pageInfo } = data.boatsConnection;
    ids.unshift(...idsOf(nodes));
    if (!pageInfo.hasPreviousPage) return ids;
    before = `, before: "${pageInfo.startCursor}"`;
  }
}

const orders = [
  ...['skipper_name', 'skipper_nick', 'skipper_born', 'skipper_fee'],
  ...['skipper_number', 'skipper_isAway', 'skipper_rank', 'ship_name'],
];
test.each(orders)(
  'a walk by %s is exact in both directions, on both APIs',
  async (member) => {
    const all = idsOf(inOrder(await expected(), member));
    expect(await walked(`sort=${member}`)).toEqual(all);
    expect(await walked(`sort=${member}_desc`)).toEqual(all.toReversed());
    expect(await backwards(member)).toEqual(all);
    expect(await backwards(`${member}_desc`)).toEqual(all.toReversed());
  },
);

type Row = Record<string, any>;
const filters: Array<[string, string, string, (row: Row) => boolean]> = [
  [
    'skipper_name=Ada',
    'skipper_name: "Ada"',
    'id',
    (row) => row.skipper_name === 'Ada',
  ],
  [
    'skipper_name_is_null=true',
    'skipper_name_is_null: true',
    'id',
    (row) => row.skipper_name === null,
  ],
  [
    'skipper_isAway=true',
    'skipper_isAway: true',
    'id',
    (row) => row.skipper_isAway,
  ],
  [
    'skipper_rank_in=mate&skipper_rank_in=captain',
    'skipper_rank_in: [mate, captain]',
    'id',
    (row) => row.skipper_rank !== null,
  ],
  [
    'skipper_rank_in=mate',
    'skipper_rank_in: [mate]',
    'id',
    (row) => row.skipper_rank === 'mate',
  ],
  ['mate_name=bob', 'mate_name: "bob"', 'id', (row) => row.mate_name === 'bob'],
  [
    'skipper_name_prefix=aD',
    'skipper_name_prefix: "aD"',
    'skipper_name',
    (row) => /^ad/i.test(row.skipper_name ?? ''),
  ],
  [
    'skipper_name_prefix=',
    'skipper_name_prefix: ""',
    'skipper_name',
    (row) => row.skipper_name !== null,
  ],
  [
    'skipper_nick_prefix=N1',
    'skipper_nick_prefix: "N1"',
    'skipper_nick',
    (row) => row.skipper_nick === 'n1',
  ],
  [
    'ship_name_prefix=boat%201',
    'ship_name_prefix: "boat 1"',
    'ship_name',
    (row) => /^boat 1/.test(row.ship_name ?? ''),
  ],
  [
    'skipper_name_gte=b',
    'skipper_name_gte: "b"',
    'skipper_name',
    (row) => (row.skipper_name ?? '').toLowerCase() >= 'b',
  ],
  [
    'skipper_fee_gt=9.00',
    'skipper_fee_gt: "9.00"',
    'skipper_fee',
    (row) => row.skipper_fee !== null && Number(row.skipper_fee) > 9,
  ],
  [
    'skipper_fee_lte=9',
    'skipper_fee_lte: "9"',
    'skipper_fee',
    (row) => row.skipper_fee !== null && Number(row.skipper_fee) <= 9,
  ],
  [
    'skipper_number_gte=9007199254740993',
    'skipper_number_gte: "9007199254740993"',
    'skipper_number',
    (row) =>
      row.skipper_number !== null &&
      BigInt(row.skipper_number) >= 9007199254740993n,
  ],
  [
    'skipper_born_gte=1951-01-01T00:00:00Z&skipper_born_lt=1953-01-01T00:00:00Z',
    'skipper_born_gte: "1951-01-01T00:00:00Z", skipper_born_lt: "1953-01-01T00:00:00Z"',
    'skipper_born',
    (row) => row.skipper_born >= '1951' && row.skipper_born < '1953',
  ],
];
test.each(filters)(
  '%s is exact, with its total, on both APIs and with each order',
  async (path, given, member, isIn) => {
    const found = (await expected()).filter(isIn);
    expect(found.length).toBeGreaterThan(0);
    const sorted = idsOf(member === 'id' ? found : inOrder(found, member));
    expect(await walked(path)).toEqual(sorted);
    expect(await backwards(member, `, ${given}`)).toEqual(sorted);
    expect(await backwards(`${member}_desc`, `, ${given}`)).toEqual(
      sorted.toReversed(),
    );
    const counted = await ask(`/boats?${path}`, 'GET', undefined, {
      prefer: 'count=exact',
    });
    expect(counted.headers['x-total-count']).toBe(`${found.length}`);
    const isOwnOrder = member === 'id';
    if (!isOwnOrder) return;
    for (const order of orders) {
      const all = idsOf(inOrder(found, order));
      expect(await walked(`${path}&sort=${order}`)).toEqual(all);
      expect(await backwards(`${order}_desc`, `, ${given}`)).toEqual(
        all.toReversed(),
      );
    }
  },
);

test('a cursor of null is none of an order without nulls', async () => {
  const cursor = Buffer.from('["skipper_name",null,"7"]').toString('base64url');
  expect((await ask(`/boats?sort=skipper_name&after=${cursor}`)).status).toBe(
    200,
  );
  const other = Buffer.from('["skipper_name",7,"7"]').toString('base64url');
  expect((await ask(`/boats?sort=skipper_name&after=${other}`)).status).toBe(
    400,
  );
});

test('another name, another reference and a removal move it', async () => {
  const { json: one } = await ask('/skippers', 'POST', skipper(2));
  const { json: moved } = await ask('/boats', 'POST', {
    name: 'x',
    skipperId: one.id,
  });
  const { json: tender } = await ask('/boats', 'POST', {
    name: 'y',
    tenderOfId: moved.id,
  });
  const byName = async (name: string) =>
    idsOf((await ask(`/boats?skipper_name=${name}`)).json);
  await ask(`/skippers/${one.id}`, 'PATCH', { version: 1, name: 'Quirin' });
  expect(await byName('Quirin')).toEqual([moved.id]);
  await ask(`/boats/${moved.id}`, 'PATCH', { version: 1, name: 'unlike' });
  const ships = await ask('/boats?ship_name_prefix=unl');
  expect(idsOf(ships.json)).toEqual([tender.id]);
  await ask(`/boats/${moved.id}`, 'PATCH', { version: 2, skipperId: null });
  expect(await byName('Quirin')).toEqual([]);
  const { json: again } = await ask(`/boats/${moved.id}`, 'PATCH', {
    version: 3,
    skipperId: one.id,
  });
  expect(Object.keys(again)).toEqual([
    'id',
    'name',
    'skipperId',
    'mateId',
    'tenderOfId',
    'version',
  ]);
  expect(await byName('Quirin')).toEqual([moved.id]);
  await ask(`/skippers/${one.id}`, 'DELETE');
  expect(await byName('Quirin')).toEqual([]);
});

test('a row may be restored before the one that it refers to', async () => {
  const text =
    "insert into boat (id, name, tender_of_id, ship_name) values (-2, 'a', -1, 'b'), (-1, 'b', null, null) returning ship_name";
  expect(await sql(store.database, text)).toEqual([['b'], [null]]);
});

test('a live list is filtered by it', async () => {
  const path = '/v1/boats?skipper_name=bob';
  const stream = await openStream(store, { method: 'GET', path });
  const ofBob = (await skippers()).find(({ name }) => name === 'bob').id;
  await ask('/boats', 'POST', { name: 'no' });
  const { json } = await ask('/boats', 'POST', { name: 'z', skipperId: ofBob });
  const [event] = await stream.until(1);
  expect(event?.data).toMatchObject({ name: 'z', id: json.id });
  stream.close();
});

test('a start names what is wrong', async () => {
  const lists = { ...boat.lists, prefixes: ['mate_name'] };
  const records = () => new Records(store.database, BoatEntity, lists as never);
  expect(records).toThrow(
    `sorted by mate_name needs an index; the entity lacks { name: 'boat_mate_name_id', expression: 'create index "boat_mate_name_id" on "boat" ((array[lower("mate_name") collate "C"]), "id")' }`,
  );
  const note = textSchema({ description: 'A text.' });
  const declared = (name: string) =>
    resource({
      ...{ name: 'Raft', path: '/rafts', description: 'A raft.' },
      ...{ operations: ['list'], members: { skipper_name: note } },
      through: { [name]: { by: 'skipperId', member: 'name', schema: note } },
      prefixes: [name] as never,
    });
  expect(() => declared('skipper_name')).toThrow(
    'skipper_name of Raft is a member already.',
  );
  const RaftEntity = defineEntity({
    name: 'Raft',
    tableName: 'raft',
    properties: declared('skipper_nick').columns,
  });
  await expect(createdBy([RaftEntity] as never)).rejects.toThrow(
    'raft.skipper_nick goes through skipperId, which is no relation to a row with such a name of its own.',
  );
  const skipperId = () =>
    p.manyToOne(SkipperEntity).mapToPk().joinColumn('skipper_id');
  const long = `skipper_${'x'.repeat(50)}`;
  const LongEntity = defineEntity({
    name: 'Raft',
    tableName: 'raft',
    properties: { ...declared(long).columns, skipperId },
  });
  await expect(createdBy([SkipperEntity, LongEntity] as never)).rejects.toThrow(
    `raft.through_${long}: raft_through_${long}_fn has 74 bytes, and PostgreSQL cuts names at 63.`,
  );
  const SternEntity = defineEntity({
    ...{ name: 'Stern', tableName: 'stern' },
    properties: {
      id: p.bigint().primary().autoincrement(),
      name: p.text(),
    },
  });
  const sternId = () =>
    p.manyToOne(SternEntity).mapToPk().joinColumn('skipper_id');
  const alike = [
    ['raft', 'log_name'],
    ['raft_log', 'name'],
  ].map(([tableName = '', name = '']) =>
    defineEntity({
      ...{ name: tableName, tableName },
      properties: { ...declared(name).columns, skipperId: sternId },
    }),
  );
  await expect(createdBy([SternEntity, ...alike] as never)).rejects.toThrow(
    'stern would have two triggers through_raft_log_name.',
  );
  const rename = (from: string, to: string) =>
    sql(store.database, `alter trigger ${from} on boat rename to ${to}`);
  await rename('through_mate_name', 'through_none');
  const missing = 'boat has no trigger through_mate_name';
  await expect(store.database.assertColumns()).rejects.toThrow(missing);
  await rename('through_none', 'through_mate_name');
  await store.database.assertColumns();
});

test('names that change at the same time are those of the rows', async () => {
  const { json: one } = await ask('/skippers', 'POST', skipper(1));
  const changes = Array.from({ length: 8 }, async (_, at) => {
    await ask(`/skippers/${one.id}`, 'PATCH', {
      version: at + 1,
      name: `n${at}`,
    });
    await ask('/boats', 'POST', { name: 'q', skipperId: one.id });
  });
  await Promise.all(changes);
  const wrong = await sql(
    store.database,
    'select 1 from boat join skipper on skipper.id = skipper_id where skipper_name is distinct from skipper.name',
  );
  expect(wrong).toEqual([]);
});
