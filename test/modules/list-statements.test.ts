// runs: embedded, postgres

import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { printedIn, statementsOf } from '../support/statements.ts';
import { storeForAll } from '../support/store.ts';
import { toysModule } from './toys/toys.module.ts';

const store = storeForAll({}, undefined, { more: [toysModule] });

const sentBy = (path: string) =>
  statementsOf(/^list_(?:pet|toy)_/, store.database, () => rest(store, path));

test('the head of the file that makes them has the statements of three lists', async () => {
  const first = await sentBy('/v1/pets');
  const ofStatus = await sentBy('/v1/pets?status=sold&after=7');
  const cursor = Buffer.from('["name","rex","7"]').toString('base64url');
  const ofKinds = `/v1/toys?kind_in=ball&kind_in=bone&sort=name_desc&after=${cursor}`;
  const byName = await sentBy(ofKinds);
  const sent = [...first, ...ofStatus, ...byName];
  expect(printedIn('lists/statement.ts')).toEqual(sent);
});
