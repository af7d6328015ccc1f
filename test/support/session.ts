import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { TestDatabase } from './database.ts';
import { eventually } from './process.ts';

/** The URL of the database of a test without the pooler. PostgreSQL only. */
export function urlOf({ env }: Pick<TestDatabase, 'env'>): string {
  const given = new URL((env as { DATABASE_URL: string }).DATABASE_URL);
  const url = new URL(process.env.TEST_DATABASE_URL ?? given);
  url.pathname = given.pathname;
  return url.href;
}

/** Opens a session beside those of the service. PostgreSQL only. */
export const openSession = (
  test: Pick<TestDatabase, 'env'>,
): Promise<pg.Client> => connected(urlOf(test));

/**
 * Ends the sessions of the service, so that its next sessions have the current
 * settings.
 */
export async function endSessions(session: pg.Client): Promise<void> {
  const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  await eventually(async () => (await session.query(terminate)).rowCount === 0);
}

/** A role for the service that owns the database of a test. */
export interface TestRole {
  name: string;
  url: string;
  /** Only after the database was dropped. */
  drop(): Promise<void>;
}

export async function createRole(
  test: Pick<TestDatabase, 'env'>,
): Promise<TestRole> {
  const name = `animal_store_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(urlOf(test));
  const database = url.pathname.slice(1);
  await query(
    url.href,
    `create role ${name} login`,
    `alter database ${database} owner to ${name}`,
  );
  url.username = name;
  return {
    name,
    url: url.href,
    drop: async () =>
      void (await query(process.env.TEST_DATABASE_URL, `drop role ${name}`)),
  };
}

type Server = string | pg.ClientConfig | undefined;

/** Opens a session, which the test ends if the server does not. */
export async function connected(server: Server): Promise<pg.Client> {
  const session = new pg.Client(server);
  // A server that is killed, or drops the database, during the session is no
  // failure of the test.
  session.on('error', () => undefined);
  await session.connect();
  return session;
}

/**
 * Runs statements, one after the other, in a new session. @returns the rows of
 * the last one
 */
export async function query<Row = any>(
  server: Server,
  ...statements: Array<string | pg.QueryConfig>
): Promise<Row[]> {
  const session = await connected(server);
  try {
    let rows: Row[] = [];
    for (const statement of statements)
      rows = (await session.query(statement)).rows;
    return rows;
  } finally {
    await session.end().catch(() => undefined);
  }
}

/**
 * Opens a session with an embedded store that a process has open, or with a
 * PostgreSQL. @param place folder or URL
 */
export function sessionWith(place: string): Promise<pg.Client> {
  const isAddress = place.startsWith('postgres');
  return connected(
    isAddress
      ? place
      : { host: place, port: 5432, user: 'postgres', database: 'postgres' },
  );
}
