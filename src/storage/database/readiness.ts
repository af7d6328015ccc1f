import type { MikroORM } from '@mikro-orm/postgresql';
import { tryAgain } from '../../errors.ts';
import type { Statement } from '../records/statement.ts';
import { citusNode, isWorkerOfCitus } from './citus.ts';
import { countersBehind } from './counters.ts';
import { isUnmigrated, sqlState } from './errors.ts';
import type { Model } from './options.ts';
import type { Server } from './server.ts';

type Readiness = [isReadOnly: string, mayWrite: string | null, applied: string];

/** Checks that all tables are migrated, and that this role may read and write them. @throws StoreError SERVICE_UNAVAILABLE */
export async function assertServable(orm: MikroORM, primary: Server, { migrations }: Model): Promise<void> {
  // First, because a worker has no table of migrations.
  if ((await citusNode(primary.ask)) === 'worker') throw tryAgain(isWorkerOfCitus);
  const metadata = [...orm.getMetadata().getAll().values()];
  const sequences = metadata.filter(({ props }) => props.some(({ autoincrement }) => autoincrement));
  const answer = primary.rows<Readiness>(readiness, [
    metadata.map(({ tableName }) => tableName),
    sequences.map(({ tableName }) => tableName),
    migrations.map(({ name }) => name),
  ]);
  const [row] = await answer.catch((error) => {
    throw sqlState(error) === '42501' ? tryAgain(mayNot, error) : error;
  });
  const [isReadOnly, mayWrite, applied] = row as Readiness;
  if (isReadOnly === 't') {
    // The way to the primary may lead to another server by now.
    primary.renew();
    throw tryAgain('The database is read-only: a standby, perhaps.');
  }
  if (mayWrite !== 't') throw tryAgain(mayNot);
  if (Number(applied) < migrations.length) throw tryAgain('The database lacks migrations.');
  const [behind] = await countersBehind(primary.ask, orm);
  if (behind) throw tryAgain(`Every creation fails: the ids of ${behind.table} are behind its rows. Run \`migrate\`.`);
}

const mayNot = 'The role in DATABASE_URL may not read and write all tables.';

const readiness: Statement = {
  name: 'readiness',
  text: `
    select pg_is_in_recovery() or current_setting('transaction_read_only')::bool,
      (select bool_and(has_table_privilege(quote_ident(name), 'select') and has_table_privilege(quote_ident(name), 'insert'))
        from unnest($1::text[]) as name)
      and (select bool_and(has_sequence_privilege(pg_get_serial_sequence(quote_ident(name), 'id'), 'usage'))
        from unnest($2::text[]) as name),
      (select count(*) from mikro_orm_migrations where name = any($3::text[]))`,
};

/** The names of the migrations that have not been applied there. */
export async function pendingMigrations(server: Server, { migrations }: Model): Promise<string[]> {
  const names = migrations.map(({ name }) => name);
  const text = 'select name from mikro_orm_migrations where name = any($1::text[])';
  const rows = await server.rows<[string]>({ name: 'migrated', text }, [names]).catch((error) => {
    if (isUnmigrated(error)) return [];
    throw error;
  });
  const applied = new Set(rows.map(([name]) => name));
  return names.filter((name) => !applied.has(name));
}
