import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../process.ts';
import { query } from '../session.ts';
import { DataFolder, type Settings, user } from './data-folder.ts';
import {
  childrenOf,
  hasConnections,
  type Program,
  untilUp,
} from './program.ts';

export { hasPostgres, type Settings } from './data-folder.ts';

/** Little memory, no fsync, and many connections. */
const ours: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 300,
  shared_buffers: '64MB',
  fsync: 'off',
  // A replica that was stopped finds the WAL that it has missed.
  wal_keep_size: '512MB',
  // In files of the data folder, because a killed server would leave its
  // segments in /dev/shm.
  dynamic_shared_memory_type: 'mmap',
};

/**
 * A private PostgreSQL on 127.0.0.1 that trusts every client; its only user is
 * `postgres`.
 */
export class TestPostgres {
  readonly name: string;
  readonly port: number;
  readonly #folder: DataFolder;
  #settings: Settings;
  #program: Program | undefined;

  private constructor(
    name: string,
    port: number,
    folder: DataFolder,
    settings: Settings,
  ) {
    this.name = name;
    this.port = port;
    this.#folder = folder;
    this.#settings = settings;
  }

  /** Starts a new server with these settings. */
  static async start(settings: Settings = {}): Promise<TestPostgres> {
    return TestPostgres.#startIn(await DataFolder.create(), settings);
  }

  /**
   * Starts a server that is no copy of another: it has its own system
   * identifier, which initdb draws.
   */
  static async startForeign(): Promise<TestPostgres> {
    return TestPostgres.#startIn(await DataFolder.initialise(), {});
  }

  static async #startIn(
    folder: DataFolder,
    settings: Settings,
  ): Promise<TestPostgres> {
    const server = new TestPostgres('primary', await freePort(), folder, {
      ...ours,
      ...settings,
    });
    await server.start();
    return server;
  }

  /**
   * Starts a streaming replica of this server; its name is that in
   * `synchronous_standby_names`.
   */
  async replica(name: string, settings: Settings = {}): Promise<TestPostgres> {
    // A promoted replica has no standby of its own to wait for.
    const { synchronous_standby_names, ...inherited } = this.#settings;
    const folder = await DataFolder.copy(this.port, name);
    const replica = new TestPostgres(name, await freePort(), folder, {
      ...inherited,
      ...settings,
    });
    await replica.start();
    return replica;
  }

  url(database = 'postgres'): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** The file with the output of the server. */
  get log(): string {
    return this.#folder.log;
  }

  get isRunning(): boolean {
    return this.#program?.isRunning() ?? false;
  }

  /** Starts the server on its port and with its data. */
  async start(): Promise<void> {
    this.#configure();
    this.#program = this.#folder.open();
    await untilUp(
      this.#program,
      this.log,
      async () => (await this.query('select 1')).length === 1,
    );
  }

  /**
   * Changes settings while the server runs: only those that need no restart.
   */
  async set(settings: Settings): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    const before = await this.#loadTime();
    this.#configure();
    this.#program?.child.kill('SIGHUP');
    // The server reads them some time after the signal.
    while ((await this.#loadTime()) === before) await pause(10);
  }

  query<Row>(
    text: string,
    values: unknown[] = [],
    database?: string,
  ): Promise<Row[]> {
    return query<Row>(
      { connectionString: this.url(database), connectionTimeoutMillis: 5000 },
      { text, values },
    );
  }

  /** Promotes a replica, and waits until it is the primary. */
  async promote(): Promise<void> {
    await this.query('select pg_promote(true, 60)');
  }

  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.#program?.stop(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  /**
   * Kills all processes, as when the machine fails: no connection is closed by
   * the protocol.
   */
  async kill(): Promise<void> {
    if (!this.#program?.isRunning()) return;
    const { pid } = this.#program;
    // Stopped first, so that it starts no further process before its children
    // are killed.
    process.kill(pid, 'SIGSTOP');
    const all = [...childrenOf(pid), pid];
    for (const id of all) kill(id);
    await this.#program.stop('SIGKILL');
    // The system closes their connections when they end, which is later than
    // the signal.
    while (all.some(hasConnections)) await pause(5);
  }

  /**
   * Suspends it until `resume`: it does not answer, and its connections stay
   * open.
   */
  pause(): void {
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#program?.pid ?? 0;
    for (const id of [pid, ...childrenOf(pid)]) process.kill(id, signal);
  }

  /** Stops the server and removes its data. */
  async remove(): Promise<void> {
    await this.stop('immediate');
    this.#folder.remove();
  }

  #configure(): void {
    this.#folder.configure({ ...this.#settings, port: this.port });
  }

  async #loadTime(): Promise<string> {
    const [row] = await this.query<{ at: string }>(
      'select pg_conf_load_time()::text as at',
    );
    return row?.at ?? '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}
