import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../process.ts';
import type { Settings } from './postgres.ts';
import { asUser, type Home, newHome, type Program, startProgram, untilUp } from './program.ts';

const binary = '/usr/sbin/pgbouncer';

/** Whether there is a PgBouncer to run (Debian: pgbouncer). */
export const hasPgBouncer = existsSync(binary);

const user = 'postgres';

/** A private PgBouncer on 127.0.0.1 in front of one server; it trusts everybody. */
export class TestPgBouncer {
  readonly port: number;
  readonly log: string;
  readonly #home: Home;
  readonly #program: Program;

  private constructor(port: number, home: Home, log: string, program: Program) {
    this.port = port;
    this.#home = home;
    this.log = log;
    this.#program = program;
  }

  /**
   * Starts one that is set up as Debian's package is, but for where it listens and whom it lets in.
   *
   * @param server any database of it can be reached, by its name
   * @param settings of the section `[pgbouncer]`, `pool_mode` for instance, which is `session` as it comes
   */
  static async start(server: { port: number }, settings: Settings = {}): Promise<TestPgBouncer> {
    const [port, home] = [await freePort(), await newHome(user)];
    const [file, log] = [join(home.path, 'pgbouncer.ini'), join(home.path, 'log')];
    writeFileSync(file, configuration(port, server.port, settings));
    const program = startProgram(asUser(user, [binary, file]), home.path, log);
    const bouncer = new TestPgBouncer(port, home, log, program);
    await untilUp(program, log, async () => (await bouncer.show('version')).length > 0);
    return bouncer;
  }

  url(database = 'postgres'): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Asks its console. @param what `pools`, `clients`, `servers`, `stats` ... */
  async show(what: string): Promise<Array<Record<string, unknown>>> {
    const console = new pg.Client({ connectionString: this.url('pgbouncer'), connectionTimeoutMillis: 5000 });
    console.on('error', () => undefined);
    try {
      await console.connect();
      return (await console.query(`show ${what}`)).rows;
    } finally {
      await console.end().catch(() => undefined);
    }
  }

  /** Ends it at once, and what goes through it. */
  async stop(): Promise<void> {
    await this.#program.stop('SIGTERM');
    this.#home.remove();
  }
}

function configuration(port: number, serverPort: number, settings: Settings): string {
  const lines = Object.entries({
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    ...settings,
  }).map(([name, value]) => `${name} = ${value}`);
  // The user is said here because `any` takes no name from a client.
  return ['[databases]', `* = host=127.0.0.1 port=${serverPort} user=${user}`, '[pgbouncer]', ...lines, ''].join('\n');
}
