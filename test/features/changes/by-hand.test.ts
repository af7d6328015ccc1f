import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { sql } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { exportAndImport } from '../../support/transfer.ts';
import { callTool } from '../assistants/mcp.ts';

const store = storeForAll({ MCP: 'true' }, undefined, {
  more: [ledgersModule],
});
const write = async (path: string, json: object, method = 'POST') =>
  (await rest(store, `/v1${path}`, { method, json })).json;
const ofTable = async () => {
  const { indexes } = await store.database.examine();
  return indexes?.split(', ').filter((name) => name.startsWith('change_'));
};

test('doctor misses an index of the table, and no other', async () => {
  expect(await ofTable()).toEqual([]);
  const index = 'change_collection_item_id_id_index';
  await sql(store.database, `drop index ${index}`);
  expect(await ofTable()).toEqual([index]);
});

test('an import tells what it adds', async () => {
  const entry = { title: 'imported', amount: '1.00', number: 1 };
  await write('/entries', entry);
  await exportAndImport(store.database, ledgersModule, 'entry', 'csv');
  const { json } = await rest(store, '/v1/changes?collection=entries');
  expect(json).toMatchObject([
    { action: 'created', actor: 'key:1', after: entry },
    { action: 'created', actor: 'operator', request: null, after: entry },
  ]);
});

test('an assistant reads changes', async () => {
  const { id } = await write('/memos', { text: 'first' });
  await write(`/memos/${id}`, { version: 1, text: 'next' }, 'PATCH');
  const query = { collection: 'memos', itemId: `${id}` };
  const { structuredContent, isError } = await callTool(
    store,
    'list_changes',
    query,
  );
  expect(isError).not.toBe(true);
  expect(Object.values(structuredContent)).toMatchObject([
    [{ action: 'created' }, { before: { text: 'first' } }],
  ]);
});

test('a subscription follows changes', async () => {
  const query = `subscription { changeAdded(collection: "memos") { id action itemId before after actor } }`;
  const stream = await openStream(store, { body: { query } });
  const { id } = await write('/memos', { text: 'followed' });
  await write(`/memos/${id}`, { version: 1, text: 'changed' }, 'PATCH');
  const events = await stream.until(2);
  stream.close();
  const changes = events.map(({ data }) => data.data.changeAdded);
  expect(changes).toMatchObject([
    { action: 'created', itemId: `${id}`, before: null, actor: 'key:1' },
    { action: 'changed', after: { text: 'changed' } },
  ]);
  expect(events.map((one) => one.id)).toEqual(changes.map((one) => one.id));
});
