import { Call } from '#engine/call.js';
import { complete } from '#engine/feature.js';
import { tablesOf } from '#engine/features/backup/tables.js';
import { removeOldChanges } from '#engine/features/changes/expiry.js';
import { changes } from '#engine/features/changes/index.js';
import { contracts } from '#engine/process/contracts.js';
import { modelOf } from '#engine/process/model.js';
import { Records } from '#engine/records/records.js';
import {
  EntryEntity,
  entry,
  ledgersModule,
} from '../../modules/ledgers/ledgers.module.ts';
import { sql } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, beforeEach, expect, test } from '../../support/jest.ts';
import { onPostgres } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { serviceOf } from '../../support/service.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from '../tokens/provider.ts';

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    JWT_TENANT: 'tenant',
    GRAPHQL_FEDERATION: 'true',
  }),
);
const store = storeForAll(env, undefined, { more: [ledgersModule] });
const keys = {} as Record<
  'ada' | 'bob' | 'all' | 'memos' | 'ledgers' | 'none',
  string
>;
beforeAll(async () => {
  const scopes = {
    ada: 'write',
    bob: 'ledgers:write changes:read',
    all: 'write all',
    memos: 'ledgers:read ledgers:all changes:read',
    ledgers: 'ledgers:write',
    none: 'changes:read',
  };
  for (const [name, scope] of Object.entries(scopes))
    keys[name as 'ada'] = (await store.keys.issue({ name, scope })).key;
});

beforeEach(() => sql(store.database, 'truncate change'));

const write = async (key: string, path: string, json: object) =>
  (await rest(store, `/v1${path}`, { method: 'POST', json, key })).json;
const seen = async (key: string, query = '') => {
  const { json } = await rest(store, `/v1/changes${query}`, { key });
  return json.map?.(({ after }: any) => after?.text ?? after?.title) ?? json;
};

test('a caller sees changes of the rows that it sees', async () => {
  await write(keys.ada, '/memos', { text: 'of ada' });
  const { id } = await write(keys.bob, '/memos', { text: 'of bob' });
  const shared = { title: 'of all', amount: '1', number: 1 };
  await write(keys.bob, '/entries', shared);
  expect(await seen(keys.ada)).toEqual(['of ada', 'of all']);
  expect(await seen(keys.bob)).toEqual(['of bob', 'of all']);
  expect(await seen(keys.all)).toEqual(['of ada', 'of bob', 'of all']);
  expect(await seen(keys.none)).toEqual([]);
  expect(await seen(keys.ledgers)).toMatchObject({ status: 403 });
  const ofBob = `?collection=memos&itemId=${id}`;
  expect(await seen(keys.ada, ofBob)).toEqual([]);
  expect(await seen(keys.bob, ofBob)).toEqual(['of bob']);
  expect(await seen(keys.memos, ofBob)).toEqual(['of bob']);
  expect(await seen(keys.memos, '?collection=memos')).toEqual([
    'of ada',
    'of bob',
  ]);
  expect(await seen(keys.memos)).toMatchObject({
    status: 400,
    message: 'collection must be given: the key sees all rows of some.',
  });
});

test('another subgraph gets no change', async () => {
  const query = `{ _entities(representations: [{ __typename: "Change", id: "1" }]) { __typename } }`;
  const { data } = await graphqlText(store, { query }, keys.all);
  expect(data).toEqual({ _entities: [null] });
});

test('a row that left its owner leaves its earlier changes with it', async () => {
  const { id } = await write(keys.ada, '/memos', { text: 'moved' });
  await sql(store.database, `update memo set writer = 'key:0' where id = $1`, [
    id,
  ]);
  await rest(store, `/v1/memos/${id}`, { method: 'DELETE', key: keys.all });
  const item = `?collection=memos&itemId=${id}`;
  expect(await seen(keys.ada, item)).toEqual(['moved']);
  expect(await seen(keys.all, item)).toEqual(['moved', undefined]);
});

test('a tenant sees its changes, with the subject that made them', async () => {
  const tokenOf = (sub: string, tenant: string) =>
    provider.token({ scope: 'pets:write', sub, tenant });
  await write(tokenOf('ada', 'north'), '/files', { text: 'north' });
  await write(tokenOf('bob', 'south'), '/files', { text: 'south' });
  const key = tokenOf('carol', 'north');
  const { json } = await rest(store, '/v1/changes?collection=files', { key });
  expect(json).toMatchObject([
    { actor: 'subject:ada', tenant: 'north', after: { text: 'north' } },
  ]);
});

test('what is done for a tenant is of the caller and its own tenant', async () => {
  const entries = new Records(store.database, EntryEntity, entry.lists);
  const call = new Call();
  const caller = { id: 9, name: 'ada', subject: 'ada', scopes: ['write'] };
  call.caller = { ...caller, tenant: 'north' };
  const other = { scopes: ['write'], subject: 'bob', tenant: 'south' };
  const input = { title: 'given', amount: '1', number: 2n };
  const { id } = await entries.create(input as never, call.onBehalfOf(other));
  const path = `/v1/changes?collection=entries&itemId=${id}`;
  const { json } = await rest(store, path);
  expect(json).toMatchObject([{ actor: 'subject:ada', tenant: 'north' }]);
});

test('what commands write is of the operator', async () => {
  const entries = new Records(store.database, EntryEntity, entry.lists);
  const input = { title: 'imported', amount: '1', number: 1n };
  const { id } = await entries.create(input as never, Call.ofOperator());
  const path = `/v1/changes?collection=entries&itemId=${id}`;
  const { json } = await rest(store, path);
  expect(json).toMatchObject([{ actor: 'operator', request: null }]);
});

test('changes are followed, and resumed after the last one that was seen', async () => {
  const headers = { 'last-event-id': '0' };
  const path = '/v1/changes?collection=memos';
  const open = (more: object) =>
    openStream(store, {
      method: 'GET',
      path,
      key: keys.bob,
      headers: more as never,
    });
  await write(keys.bob, '/memos', { text: 'of bob' });
  const all = await open(headers);
  await write(keys.ada, '/memos', { text: 'unseen' });
  await write(keys.bob, '/memos', { text: 'live' });
  const [first, second] = await all.until(2);
  expect([first, second].map((one) => one?.data.after.text)).toEqual([
    'of bob',
    'live',
  ]);
  all.close();
  const resumed = await open({ 'last-event-id': `${first?.id}` });
  expect(await resumed.until(1)).toEqual([second]);
  resumed.close();
});

const onlyOnPostgres = onPostgres ? test : test.skip;
onlyOnPostgres('a change under way holds back those after it', async () => {
  const entries = new Records(store.database, EntryEntity, entry.lists);
  const call = Call.ofOperator();
  const add = (title: string) =>
    entries.create({ title, amount: '1', number: 1n } as never, call);
  const [slow, quick] = [await add('slow'), await add('quick')];
  const after = (
    await rest(store, '/v1/changes?sort=id_desc&limit=1', { key: keys.all })
  ).json[0].id;
  const list = async () => {
    const path = `/v1/changes?after=${after}`;
    const { json } = await rest(store, path, { key: keys.all });
    return json.map(({ itemId }: any) => BigInt(itemId));
  };
  const change = (id: unknown, number: bigint) =>
    entries.change(
      id as never,
      { version: Number(number) - 1, number } as never,
      call,
    );
  await store.database.transaction(call, { creates: [] }, async () => {
    await change(slow.id, 2n);
    const others = rest(store, `/v1/entries/${quick.id}`, {
      method: 'PATCH',
      json: { version: 1, number: 2 },
    });
    expect((await others).status).toBe(200);
    const { json } = await rest(store, `/v1/changes?after=${after}`, {
      key: keys.all,
    });
    expect(json).toEqual([]);
    await change(slow.id, 3n);
  });
  expect(await list()).toEqual(
    [slow.id, quick.id, slow.id].map(BigInt as never),
  );
});

test('old changes are removed, the oldest first, but the last old one', async () => {
  const { database } = store;
  for (const text of ['a', 'b', 'c']) await write(keys.ada, '/memos', { text });
  await sql(
    database,
    `update change set at = now() - interval '91 days' where id in (select id from change order by id limit 3)`,
  );
  const [[before]] = (await sql<[string]>(
    database,
    'select count(*)::text from change',
  )) as [[string]];
  expect(
    await removeOldChanges(
      { rows: (one, values) => sql(database, one.text, values) as never },
      90,
    ),
  ).toBe(false);
  const [[left]] = (await sql<[string]>(
    database,
    'select count(*)::text from change',
  )) as [[string]];
  expect(Number(before) - Number(left)).toBe(2);
});

test('a copy of the store has changes and their counter', () => {
  const tables = tablesOf(modelOf(store.modules));
  expect(tables.find(({ name }) => name === 'change')).toMatchObject({
    counted: 'id',
  });
});

test('a service without such collections has no table and no route for them', async () => {
  const { modules } = serviceOf(store.modules.slice(0, 1), [changes]);
  const whole = complete({ modules, features: [changes] });
  expect(await whole.modules()).toHaveLength(1);
});

test('a start names a trace that nothing keeps', async () => {
  const service = serviceOf([ledgersModule], []);
  await expect(contracts(service)).rejects.toThrow(
    'memos has a trace, which needs the feature changes, and keepsChanges in its module.',
  );
});
