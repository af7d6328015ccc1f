// runs: embedded, postgres

import { readFileSync } from 'node:fs';
import { withRows } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { toysModule } from './toys/toys.module.ts';

const store = storeForAll({}, undefined, { more: [toysModule] });

const withoutSpace = (text: string) => text.replace(/\s+/g, '');
const head = readFileSync(
  'packages/engine/src/records/lists/statement.ts',
  'utf8',
).split('*/')[0];
/** Each indented paragraph of the comment. */
const printed = `${head}`
  .split(/^ \*(?! {3}).*$/m)
  .map((part) => withoutSpace(part.replace(/^ \*/gm, '')))
  .filter((part) => part.startsWith('select'));

async function sentBy(path: string) {
  const sent: string[] = [];
  await withRows(
    store.database,
    (rows) => (statement, values) => {
      const isList = /^list_(?:pet|toy)_/.test(statement.name);
      if (isList) sent.push(withoutSpace(statement.text));
      return rows(statement, values) as never;
    },
    () => rest(store, path),
  );
  return sent;
}

test('the head of the file that makes them has the statements of three lists', async () => {
  const first = await sentBy('/v1/pets');
  const ofStatus = await sentBy('/v1/pets?status=sold&after=7');
  const cursor = Buffer.from('["name","rex","7"]').toString('base64url');
  const ofKinds = `/v1/toys?kind_in=ball&kind_in=bone&sort=name_desc&after=${cursor}`;
  const byName = await sentBy(ofKinds);
  expect(printed).toEqual([...first, ...ofStatus, ...byName]);
});
