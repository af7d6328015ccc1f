import { execFile, spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  asUser,
  atExit,
  type Home,
  newHome,
  type Program,
  startProgram,
} from './program.ts';

const execute = promisify(execFile);

const newestFirst = (one: string, other: string) =>
  other.localeCompare(one, 'en', { numeric: true });
const [bin = ''] = globSync('/usr/lib/postgresql/*/bin').sort(newestFirst);

/** Whether PostgreSQL is installed (Debian: postgresql). */
export const hasPostgres = bin !== '';

/** Settings of postgresql.conf by name. */
export type Settings = Record<string, string | number>;

/** The system's user that runs the server, and its superuser. */
export const user = 'postgres';

/** The data folder of a PostgreSQL, and its log. */
export class DataFolder {
  /** The file with the output of the server. */
  readonly log: string;
  readonly #home: Home;
  readonly #data: string;
  readonly #forget: () => void;

  private constructor(home: Home) {
    this.#home = home;
    this.log = join(home.path, 'log');
    this.#data = join(home.path, 'data');
    this.#forget = atExit(() => this.#forgetMemory());
  }

  static #empty: Promise<DataFolder> | undefined;

  /**
   * Creates an empty data folder as a copy of the first, because initdb takes
   * seconds.
   */
  static async create(): Promise<DataFolder> {
    DataFolder.#empty ??= DataFolder.initialise();
    const empty = (await DataFolder.#empty).#data;
    const folder = new DataFolder(await newHome(user));
    await folder.#execute('cp', '-a', empty, folder.#data);
    return folder;
  }

  /** Creates a data folder with its own system identifier. */
  static async initialise(): Promise<DataFolder> {
    const folder = new DataFolder(await newHome(user));
    await folder.#run(
      'initdb',
      '-A',
      'trust',
      '-U',
      user,
      '-E',
      'UTF8',
      '--no-sync',
    );
    return folder;
  }

  /**
   * Copies the data folder of a running server for a replica with this name.
   */
  static async copy(port: number, name: string): Promise<DataFolder> {
    const folder = new DataFolder(await newHome(user));
    const source = `host=127.0.0.1 port=${port} user=${user} application_name=${name}`;
    await folder.#run(
      'pg_basebackup',
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
      '-d',
      source,
    );
    return folder;
  }

  configure(settings: Settings): void {
    const lines = Object.entries(settings).map(
      ([name, value]) => `${name} = '${value}'\n`,
    );
    writeFileSync(join(this.#data, 'postgresql.conf'), lines.join(''));
  }

  /** Starts a server on this folder, in the foreground. */
  open(): Program {
    // The signal of an immediate shutdown, which also ends the children.
    const signal = 'SIGQUIT';
    const command = asUser(
      user,
      [join(bin, 'postgres'), '-D', this.#data],
      signal,
    );
    return startProgram(command, this.#home.path, this.log, signal);
  }

  remove(): void {
    this.#forgetMemory();
    this.#forget();
    this.#home.remove();
  }

  /**
   * Removes the shared memory segment that a killed server leaves as its lock.
   */
  #forgetMemory(): void {
    const file = join(this.#data, 'postmaster.pid');
    if (!existsSync(file)) return;
    const id = readFileSync(file, 'utf8').split('\n')[6]?.trim().split(/ +/)[1];
    if (id) spawnSync('ipcrm', ['-m', id], { stdio: 'ignore' });
  }

  #run(program: string, ...args: string[]): Promise<void> {
    return this.#execute(join(bin, program), '-D', this.#data, ...args);
  }

  async #execute(...words: string[]): Promise<void> {
    const [command = '', ...rest] = asUser(user, words);
    await execute(command, rest, { cwd: this.#home.path });
  }
}
