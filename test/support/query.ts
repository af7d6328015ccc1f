import pg from 'pg';

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
