import { performance } from 'node:perf_hooks';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { DatabaseOptions, Model } from '../../storage/database/options.ts';
import { assertServable, pendingMigrations } from '../../storage/database/readiness.ts';
import { type Finding, failure, look, ok, type Result, skipped, warning } from './finding.ts';
import { type Opened, openToLook } from './opened.ts';

export interface DatabaseLookOptions {
  database: DatabaseOptions;
  model: Model;
  migrateOnStart: boolean;
  hasBootstrapKey: boolean;
  /** Processes that open a pool each. */
  workers: number;
}

/** What cannot be looked at without it. */
const dependent = ({ database: { url } }: DatabaseLookOptions) =>
  url ? ['transport', 'migrations', 'tables', 'connections', 'clock', 'keys'] : ['migrations', 'tables', 'keys'];
/** How long (ms) it may take to close what was looked at. */
const closing = 5000;
const unreachable = 'see that it runs, and that DATABASE_URL leads there: psql "$DATABASE_URL" says the same';

/** Whether the database can be reached, and serves. What needs it is skipped when it cannot. */
export async function lookAtDatabase(options: DatabaseLookOptions): Promise<Finding[]> {
  const opening = openToLook(options.database, options.model);
  const first = await look(
    'database',
    async () => {
      const database = await opening;
      return typeof database === 'string' ? ok(database) : reached(database);
    },
    options.database.url ? unreachable : 'see docs/move.md and docs/runbook.md',
  );
  if (first.state === 'failure') {
    // It may still come, too late.
    void opening.then(closeLate, () => undefined);
    return [first, ...dependent(options).map((check) => ({ check, ...skipped('the database cannot be reached') }))];
  }
  const database = await opening;
  if (typeof database === 'string') return [first];
  try {
    return [first, ...(await lookInside(database, options))];
  } finally {
    // A statement that is never answered keeps its connection open as long as it may take: up to a day.
    await withTimeout(closing, database.close(), () => new Error()).catch(() => undefined);
  }
}

async function closeLate(database: Opened | string): Promise<void> {
  if (typeof database === 'object') await database.close();
}

async function lookInside(database: Opened, options: DatabaseLookOptions): Promise<Finding[]> {
  const { url } = options.database;
  const pending = await look('migrations', () => migrations(database, options));
  const isMigrated = pending.state === 'ok';
  const afterMigration = (work: () => Promise<Result>) => (isMigrated ? work() : skipped('migrations are pending'));
  return [
    ...(url ? [await look('transport', () => transport(database, url))] : []),
    pending,
    await look('tables', () => afterMigration(() => tables(database, options.model)), remedyOfTables),
    ...(url ? [await look('connections', () => connections(database, options))] : []),
    ...(url ? [await look('clock', () => clock(database))] : []),
    await look('keys', () => afterMigration(() => keys(database, options))),
  ];
}

const remedyOfTables = 'animal-store migrate; DATABASE_URL must lead to the primary, as a role that may write';

async function reached({ what, server }: Opened): Promise<Result> {
  const began = performance.now();
  const text = `select current_setting('server_version'), (select count(*) from pg_extension where extname = 'citus')`;
  const [[version = '', citus = ''] = []] = await server.ask({ name: 'doctor_version', text }, []);
  const ms = Math.ceil(performance.now() - began);
  return ok(`PostgreSQL ${version}${citus === '1' ? ' with Citus' : ''}, ${what}, answers in ${ms} ms`);
}

function transport({ sessions: { config, keepStatements, advice } }: Opened, url: string): Result {
  const { hostname } = new URL(url);
  const isLocal = hostname === '' || /^(?:localhost|127\.|\[::1\])/.test(hostname);
  const pooled = keepStatements ? '' : ', without prepared statements: a pooler, or DATABASE_PREPARED_STATEMENTS';
  if (advice) return warning(`a pooler drops session settings${pooled}`, `run on the database: ${advice.join('; ')}`);
  if (config.ssl) {
    const isChecked = typeof config.ssl === 'object' && config.ssl.rejectUnauthorized !== false;
    if (isChecked) return ok(`TLS, with a certificate that is checked${pooled}`);
    return warning(`TLS, but whoever answers is believed${pooled}`, 'add sslmode=verify-full to DATABASE_URL');
  }
  if (isLocal) return ok(`without TLS, on this machine${pooled}`);
  return warning(`without TLS, to another machine${pooled}`, 'add sslmode=verify-full to DATABASE_URL');
}

async function migrations({ server }: Opened, { model, migrateOnStart }: DatabaseLookOptions): Promise<Result> {
  const pending = await pendingMigrations(server, model);
  if (pending.length === 0) return ok(`all ${model.migrations.length} are applied`);
  const found = `pending: ${pending.join(', ')}`;
  return migrateOnStart
    ? warning(found, 'the next start applies them, and so does `animal-store migrate`')
    : failure(found, 'animal-store migrate (MIGRATE_ON_START is false)');
}

/** Readable, writable, and ids that are after the rows: what `/readyz` asks for. */
async function tables({ orm, server }: Opened, model: Model): Promise<Result> {
  await assertServable(orm, server, model);
  return ok('readable and writable, ids after all rows');
}

async function connections({ server }: Opened, { database, workers }: DatabaseLookOptions): Promise<Result> {
  const text = `
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
      (select count(*) from pg_stat_activity where backend_type = 'client backend')`;
  const [[most, used] = []] = await server.ask({ name: 'doctor_connections', text }, []);
  const needed = workers * database.poolMax;
  const found = `${used} of ${most} in use; the service opens up to ${needed}`;
  if (needed <= Number(most)) return ok(found);
  return warning(found, 'lower DATABASE_POOL_MAX or WORKERS, raise max_connections, or put a pooler between');
}

/** Keys expire by the machine's clock, and are stamped by the database's. */
const tolerance = 2000;

async function clock({ server }: Opened): Promise<Result> {
  const sent = Date.now();
  const text = 'select extract(epoch from clock_timestamp()) * 1000';
  const [[theirs] = []] = await server.ask({ name: 'doctor_clock', text }, []);
  const received = Date.now();
  const difference = Math.round((sent + received) / 2 - Number(theirs));
  const found = `${Math.abs(difference)} ms ${difference < 0 ? 'behind' : 'ahead of'} the database's`;
  if (Math.abs(difference) <= tolerance + (received - sent) / 2) return ok(found);
  return warning(found, 'set the clocks by NTP: keys expire by them');
}

async function keys({ server }: Opened, { hasBootstrapKey, database }: DatabaseLookOptions): Promise<Result> {
  const text = `
    select count(*) filter (where revoked_at is null and (expires_at is null or expires_at > now())), count(*)
    from api_key`;
  const [[valid, all] = []] = await server.ask({ name: 'doctor_keys', text }, []);
  const found = `${valid} of ${all} valid`;
  if (hasBootstrapKey) return warning(`${found}, and BOOTSTRAP_API_KEY`, 'unset it when the others do: it has no end');
  if (Number(valid) > 0) return ok(found);
  if (!database.url && all === '0') return ok('none yet: the next start makes the first');
  return warning(found, 'animal-store keys issue --name <what it is for>');
}
