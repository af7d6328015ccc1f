// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { Database } from '#engine/database/database.js';
import { backUp, restore } from '#engine/features/backup/backup.js';
import { chunkSize } from '#engine/features/backup/tables.js';
import { createdBy } from '../../../modules/through/through.module.ts';
import { createTestDatabase, optionsFor } from '../../../support/database.ts';
import { sql } from '../../../support/database-access.ts';
import { foldersForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { migrationOf } from '../../../support/migrations.ts';

/** A restore inserts some rows of one table in a statement. */

const folders = foldersForEach();
const { signal } = new AbortController();
const progress = () => undefined;

const to = (entity: object) =>
  p
    .manyToOne(entity as never)
    .deleteRule('no action')
    .nullable() as never;
const id = p.bigint().primary().autoincrement();
const House = defineEntity({
  name: 'House',
  properties: {
    id,
    stored: p.boolean().nullable(),
    mainDoor: () => to(Door),
  },
});
const Door: object = defineEntity({
  name: 'Door',
  properties: { id, house: () => to(House), next: () => to(Door) },
});
/** PostgreSQL has a type of this name. */
const Box = defineEntity({ name: 'Box', properties: { id } });
const entities = [House, Door, Box] as never[];
const created = await createdBy(entities);
const migration = migrationOf('2999_01_01_000000_house', created);
const model = { entities, migrations: [migration] };
const keys =
  "select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace order by 1";
const expectedKeys = [
  ['door_house_id_foreign', 'FOREIGN KEY (house_id) REFERENCES house(id)'],
  ['door_next_id_foreign', 'FOREIGN KEY (next_id) REFERENCES door(id)'],
  [
    'house_main_door_id_foreign',
    'FOREIGN KEY (main_door_id) REFERENCES door(id)',
  ],
];

/** The store, with these rows, as a file. */
async function backupOf(rows: string) {
  const options = await optionsFor({ DATA_DIR: folders.store });
  await Database.use(options, model, async (database) => {
    await database.migrate();
    await database.withSession((session) => session.query(rows));
  });
  const file = folders.file('backup');
  await backUp(file, options, model, { progress, signal });
  return file;
}

test('rows that refer to later rows, of their table and of another one, and those of a table named as a type, are restored, and the foreign keys remain', async () => {
  const doors = 2 * chunkSize;
  const file = await backupOf(`
    insert into box (id) values (7);
    insert into house (id, stored) values (1, true), (2, false);
    insert into door (house_id) select 1 from generate_series(1, ${doors});
    update house set main_door_id = ${doors} where id = 1;
    update door set next_id = ${doors}, house_id = 2 where id = 1`);
  const target = await createTestDatabase();
  const options = await optionsFor(target.env);
  await restore(file, options, model, progress);
  await Database.use(options, model, async (database) => {
    const stored = await sql(
      database,
      'select house.id, count(*), max(door.next_id), min(main_door_id), house.stored from house join door on house_id = house.id group by house.id order by 1',
    );
    expect(stored).toEqual([
      ['1', `${doors - 1}`, null, `${doors}`, 't'],
      ['2', '1', `${doors}`, null, 'f'],
    ]);
    expect(await sql(database, keys)).toEqual(expectedKeys);
    expect(await sql(database, 'select id from box')).toEqual([['7']]);
  });
  await target.drop();
});
