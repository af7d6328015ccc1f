import {
  mkdir,
  open,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../../src/modules.ts';
import { optionsFor } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import {
  type Ended,
  eventually,
  freePort,
  type Running,
  runCommand,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { areShown, type Command, isShown } from './commands.ts';

/** The addresses of the service in the pages. */
const shown = { service: '127.0.0.1:4000', operations: '127.0.0.1:9464' };

/** A folder of the test itself, in the folder of the reader. */
const ours = '.session';

/**
 * A reader with a new store: a folder like that of the repository, shells in
 * it, and a running service.
 */
export class Session {
  #blocks = 0;
  /** The output of the last command or program that has ended. */
  #printed = '';
  /** A command that continues, as in a second terminal. */
  #stream: Running | undefined;
  readonly #state: string;

  private constructor(
    readonly folder: string,
    readonly key: string,
    readonly server: ServerProcess,
    private readonly operations: string,
    private readonly database: Database,
  ) {
    this.#state = join(folder, ours, 'state');
  }

  /** @param settings of the service, which the pages name */
  static async begin(settings: Record<string, string>): Promise<Session> {
    const folder = await newFolder();
    for (const name of await readdir('.')) {
      if (!name.startsWith('.data'))
        await symlink(resolve(name), join(folder, name));
    }
    await mkdir(join(folder, ours));
    await writeFile(join(folder, ours, 'npm'), await npm(), { mode: 0o755 });
    await writeFile(join(folder, ours, 'curl'), curl, { mode: 0o755 });
    const log = await open(join(folder, 'log'), 'w');
    const operations = `127.0.0.1:${await freePort()}`;
    const env = {
      DATA_DIR: join(folder, '.data'),
      OPERATIONS_PORT: operations.split(':')[1] as string,
      ...settings,
    };
    const server = await startServer(env, { stdout: log.fd });
    await log.close();
    const printed = () => readFile(join(folder, 'log'), 'utf8');
    await eventually(async () => (await printed()).includes('Try it:'));
    const [key = ''] = /ask_\w{20,}/.exec(await printed()) ?? [];
    const database = await Database.open(
      await optionsFor(env),
      modelOf(modules),
    );
    return new Session(folder, key, server, operations, database);
  }

  /**
   * Restores the state of the beginning for the next page: a key, no animals,
   * and a new shell.
   */
  async turnPage(): Promise<void> {
    await this.#endStream();
    for (const text of resetStatements) await sql(this.database, text);
    await rm(this.#state, { force: true });
  }

  /**
   * The text that a reader would type, with the addresses and the key of this
   * service.
   */
  #typed(text: string): string {
    return this.#placed(text).replaceAll('ask_...', this.key);
  }

  #placed(text: string): string {
    const service = new URL(this.server.origin).host;
    return text
      .replaceAll(shown.service, service)
      .replaceAll(shown.operations, this.operations);
  }

  /**
   * Runs commands one after the other in one shell. A block that begins with
   * `curl -N` continues in the background.
   *
   * @throws Error that names the command whose result differs from the page
   */
  async run(commands: Command[]): Promise<void> {
    const [first] = commands;
    if (first && /^curl -N /m.test(first.text)) return this.#follow(first);
    const place = join(this.folder, ours, `block-${++this.#blocks}`);
    const script = commands.map(({ text }, at) => {
      const step = `${place}-${at}`;
      return `export STEP=${step}\n{\n${this.#typed(text)}\n} >${step}.out 2>${step}.err\n`;
    });
    await this.#write(
      place,
      `${script.join('')}{ export -p; declare -f; } >${this.#state}\n`,
    );
    const { code, stderr } = await this.#command(['bash', place]).ended;
    for (const [at, command] of commands.entries())
      await this.#compare(command, `${place}-${at}`, code, stderr);
    if (code !== 0) throw new Error(`The shell ended with ${code}: ${stderr}`);
    this.#printed = await readFile(
      `${place}-${commands.length - 1}.out`,
      'utf8',
    );
  }

  /**
   * Starts a command that runs until the next page, as in a second terminal.
   */
  async #follow({ text }: Command): Promise<void> {
    const place = join(this.folder, ours, `block-${++this.#blocks}`);
    await this.#write(place, `export STEP=${place}\n${this.#typed(text)}`);
    this.#stream = this.#command(['bash', place]);
  }

  /**
   * The next block has the variables of the one before, as in a shell of a
   * reader.
   */
  #write(place: string, script: string): Promise<void> {
    return writeFile(
      place,
      `set -aeuo pipefail\n[ ! -e ${this.#state} ] || . ${this.#state}\n${script}`,
    );
  }

  /**
   * Runs a program of the page until it ends, or its output matches the page.
   */
  async runFile(
    text: string,
    ending: 'mjs' | 'mts',
    shown: string | undefined,
  ): Promise<void> {
    const file = join(this.folder, `block-${++this.#blocks}.${ending}`);
    await writeFile(file, this.#typed(text));
    const { child, output, ended } = this.#command([process.execPath, file]);
    let end: Ended | undefined;
    ended.then((result) => (end = result));
    await eventually(
      async () =>
        end !== undefined ||
        (shown !== undefined && isShown(shown, output.stdout)),
    );
    if (end && end.code !== 0)
      throw new Error(`The program ended with ${end.code}: ${end.stderr}`);
    child.kill();
    this.#printed = (await ended).stdout;
    if (shown !== undefined) assertShown(shown, this.#printed);
  }

  /**
   * Compares a text with the last output, or with the growing output of a
   * command that continues.
   */
  async expectOutput(text: string): Promise<void> {
    const stream = this.#stream;
    if (!stream) return assertShown(text, this.#printed);
    await eventually(async () => {
      assertShown(text, stream.output.stdout);
      return true;
    });
  }

  /** Sends a GraphQL query, whose response must have no errors. */
  async query(query: string, variables: object): Promise<void> {
    const { text, errors } = await graphqlText(
      { ...this.server, key: this.key },
      { query, variables },
    );
    if (errors) throw new Error(text);
    this.#printed = text;
  }

  async #endStream(): Promise<void> {
    this.#stream?.child.kill();
    await this.#stream?.ended;
    this.#stream = undefined;
  }

  async end(): Promise<void> {
    await this.#endStream();
    await this.database.close();
    await this.server.stop();
    await rm(this.folder, { recursive: true });
  }

  #command(command: string[]): Running {
    const path = [
      join(this.folder, ours),
      resolve('node_modules/.bin'),
      process.env.PATH,
    ].join(':');
    const env = {
      PATH: path,
      HOME: this.folder,
      KEY: this.key,
      NODE_COMPILE_CACHE: resolve('dist/compile-cache'),
    };
    // `timeout` also ends the processes that the command has started.
    return runCommand(
      ['timeout', '60', 'env', '-C', this.folder, ...command],
      env,
    );
  }

  async #compare(
    { text, status, output }: Command,
    step: string,
    code: number | null,
    stderr: string,
  ): Promise<void> {
    const read = (name: string) =>
      readFile(`${step}.${name}`, 'utf8').catch(() => undefined);
    const [printed, errors] = [await read('out'), await read('err')];
    if (printed === undefined)
      throw new Error(
        `The shell ended with ${code} before:\n${text}\n${stderr}`,
      );
    const fail = (message: string) =>
      new Error(`${message}\n${text}\nprinted:\n${printed}\n${errors}`);
    const statuses = [
      ...((await read('headers')) ?? '').matchAll(/^HTTP\/\S+ (\d{3})/gm),
    ];
    const actual = Number(statuses.at(-1)?.[1]);
    if (status !== undefined && actual !== status)
      throw fail(`The page shows ${status}, but it is ${actual}:`);
    if (status === undefined && actual >= 400 && !output?.startsWith('HTTP/'))
      throw fail(`The page shows no status, but it is ${actual}:`);
    if (output === undefined) return;
    const expected = this.#placed(output);
    const isExpected = printed.startsWith('HTTP/')
      ? areShown(expected, printed)
      : isShown(expected, printed);
    if (!isExpected) throw fail(`The page shows:\n${output}\nfor:`);
  }
}

const resetStatements = [
  'delete from idempotency_key',
  'delete from deprecated_call',
  'delete from pet',
  'alter sequence pet_id_seq restart',
  'delete from api_key where id > 1',
  "select setval('api_key_id_seq', 1)",
  'delete from key_event where id > 1',
];

/**
 * Stores the status, which the pages show, and prints an error when a request
 * fails.
 */
const curl = '#!/bin/sh\nexec /usr/bin/curl -sS -D "$STEP.headers" "$@"\n';

function assertShown(shown: string, printed: string): void {
  if (!isShown(shown, printed))
    throw new Error(
      `The page shows:\n${shown}\nbut the output is:\n${printed}`,
    );
}

/**
 * Runs the scripts of package.json that are the program like npm, but does not
 * check its build. The service runs already, and `npm test` has built the typed
 * client.
 */
async function npm(): Promise<string> {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
    scripts: Record<string, string>;
  };
  const launcher = 'node bin/animal-store.js';
  const cases = Object.entries(scripts)
    .filter(
      ([name, command]) =>
        command.startsWith(`exec ${launcher}`) && name !== 'start',
    )
    .map(
      ([name, command]) =>
        `  ${name}) ${command.replace(launcher, 'node dist/bundle/cli.js')} "$@" ;;`,
    );
  return `#!/bin/sh
[ "$1" != run ] || shift
[ "$1" != --silent ] || shift
name=$1
shift
[ "$1" != -- ] || shift
case $name in
  start) exit 0 ;;
  build) exit 0 ;;
${cases.join('\n')}
esac
echo "npm run $name is not run here" >&2
exit 1
`;
}
