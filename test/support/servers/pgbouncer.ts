import { existsSync } from 'node:fs';
import { freePort } from '../process.ts';
import { query } from '../session.ts';
import type { Settings } from './postgres.ts';
import { startConfigured } from './program.ts';

const binary = '/usr/sbin/pgbouncer';

/** Whether PgBouncer is installed (Debian: pgbouncer). */
export const hasPgBouncer = existsSync(binary);

const user = 'postgres';

export type TestPgBouncer = Awaited<ReturnType<typeof startPgBouncer>>;

/**
 * Starts a private PgBouncer on 127.0.0.1 that trusts every client; its other
 * settings are those of Debian's package.
 *
 * @param server gets the connections; each of its databases has the same name
 *   in the pooler
 * @param settings of the section `[pgbouncer]`, such as `pool_mode` (by default
 *   `session`)
 */
export async function startPgBouncer(
  server: { port: number },
  settings: Settings = {},
) {
  const port = await freePort();
  const url = (database = 'postgres') =>
    `postgres://${user}@127.0.0.1:${port}/${database}`;
  /**
   * Queries the console. @param topic `pools`, `clients`, `servers`, `stats`
   * ...
   */
  const show = (topic: string): Promise<Array<Record<string, unknown>>> =>
    query(
      { connectionString: url('pgbouncer'), connectionTimeoutMillis: 5000 },
      `show ${topic}`,
    );
  const files = { 'pgbouncer.ini': configuration(port, server.port, settings) };
  const command = (folder: string) => [binary, `${folder}/pgbouncer.ini`];
  const { log, stop } = await startConfigured(
    user,
    files,
    command,
    async () => (await show('version')).length > 0,
  );
  return { port, log, url, show, stop };
}

function configuration(
  port: number,
  serverPort: number,
  settings: Settings,
): string {
  const lines = Object.entries({
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
  }).map(([name, value]) => `${name} = ${value}`);
  // The user is set here because `any` ignores the user name of a client.
  return [
    '[databases]',
    `* = host=127.0.0.1 port=${serverPort} user=${user}`,
    '[pgbouncer]',
    ...lines,
    '',
  ].join('\n');
}
