// runs: embedded

import { Database } from '#engine/database/database.js';
import { complete } from '#engine/feature.js';
import { backUp, restore } from '#engine/features/backup/backup.js';
import { modelOf } from '#engine/process/model.js';
import { boatsModule } from '../../../modules/through/through.module.ts';
import { optionsFor } from '../../../support/database.ts';
import { sql } from '../../../support/database-access.ts';
import { features } from '../../../support/features.ts';
import { foldersForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';

const folders = foldersForEach();
const whole = complete({ modules: async () => [boatsModule], features });
const progress = () => undefined;

test('members of other rows are restored with their triggers', async () => {
  const model = modelOf(await whole.modules());
  const use = async <T>(
    DATA_DIR: string,
    work: (database: Database) => Promise<T>,
  ) => Database.use(await optionsFor({ DATA_DIR }), model, work);
  const boats = (database: Database) =>
    sql(
      database,
      'select name, skipper_name, mate_name, ship_name from boat order by id',
    );
  const write = (database: Database) =>
    database.withSession((session) =>
      session.query(`
        insert into skipper (name, born, fee, number, is_away, rank)
        select name, now(), 1, 1, false, 'mate' from unnest('{Ada,Bob}'::text[]) as name;
        insert into boat (name, skipper_id, mate_id) values ('Oar', 1, 2), ('Sail', 2, null);
        update boat set tender_of_id = 2 where id = 1`),
    );
  const expected = [
    ['Oar', 'Ada', 'Bob', 'Sail'],
    ['Sail', 'Bob', null, null],
  ];
  await use(folders.store, async (database) => {
    await database.migrate();
    await write(database);
    expect(await boats(database)).toEqual(expected);
  });
  const file = folders.file('backup');
  const other = folders.file('other');
  const { signal } = new AbortController();
  const from = await optionsFor({ DATA_DIR: folders.store });
  await backUp(file, from, model, { progress, signal });
  const into = await optionsFor({ DATA_DIR: other });
  await restore(file, into, model, progress);
  await use(other, async (database) => {
    expect(await boats(database)).toEqual(expected);
    await database.assertColumns();
    await sql(database, "update skipper set name = 'Eve' where id = 2");
    await sql(
      database,
      "insert into boat (name, skipper_id) values ('Raft', 1)",
    );
    expect(await boats(database)).toEqual([
      ['Oar', 'Ada', 'Eve', 'Sail'],
      ['Sail', 'Eve', null, null],
      ['Raft', 'Ada', null, null],
    ]);
  });
});
