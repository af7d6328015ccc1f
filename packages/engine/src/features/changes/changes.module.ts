import { every } from '../../access/background.ts';
import type { Module } from '../../api/module.ts';
import type { Database } from '../../database/database.ts';
import { LiveList } from '../../records/live-list.ts';
import { AddChangeReader, IndexChangeReader } from './add-change-reader.ts';
import { ChangeEntity, change } from './change.ts';
import { ChangeRecords } from './change-records.ts';
import { CreateChange } from './create-change.ts';
import { removeOldChanges } from './expiry.ts';

/** Average pause (ms) between removals. */
const pause = 60_000;

export const changesModule: Module = {
  tag: { name: 'Changes', description: 'Who has changed what.' },
  isLocal: true,
  entities: [ChangeEntity],
  migrations: [
    { name: '2026_11_29_010000_create_change', class: CreateChange },
    { name: '2026_11_29_050000_add_change_reader', class: AddChangeReader },
    { name: '2026_11_29_050100_index_change_reader', class: IndexChangeReader },
  ],
  open({ database, config }) {
    const days = Number(config.CHANGES_DAYS);
    const remove = () => removeOldChanges(database, days);
    const records = new ChangeRecords(database);
    const live = new LiveList(records);
    database.followChanges = live.subscribe.bind(live);
    return {
      resources: [change.serve(records)],
      routes(app) {
        every(app, pause, remove, 'old changes are not removed yet');
        // Its error is logged.
        app.addHook('onListen', () => assertNotSharded(database));
      },
    };
  },
};

/** @throws Error for a table whose rows and changes no statement can store */
async function assertNotSharded(database: Database) {
  for (const [name, { table }] of database.traced)
    if (await database.isSharded(table))
      throw new Error(
        `${name} has a trace, which Citus does not store: ${table} is distributed.`,
      );
}
