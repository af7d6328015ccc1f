import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../process.ts';
import { query } from '../session.ts';
import { atExit, newHome } from './program.ts';

const script = resolve('test/support/servers/citus/cluster');

const execute = promisify(execFile);

/** Prints to a file, because the daemons would keep a pipe open. */
const start =
  '"$0" start "$1" "$2" >"$1/log" 2>&1 || { cat "$1/log" >&2; grep -hs FATAL "$1"/?.log >&2; exit 1; }';

/** Whether a Citus cluster can be started here (citus/README.md). */
export const hasCitus =
  process.arch === 'x64' &&
  existsSync('/usr/lib/postgresql/15/bin') &&
  process.getuid?.() === 0;

/**
 * Starts a coordinator, at `url`, and two workers, each with the database
 * `shop`.
 */
export async function startCitus() {
  const home = await newHome('postgres');
  const port = await threePorts();
  // The servers are daemons, which the script finds by the process ids in their
  // folders.
  const stop = () =>
    void spawnSync(script, ['stop', home.path], { stdio: 'ignore' });
  const forget = atExit(stop);
  try {
    await execute('bash', ['-c', start, script, home.path, `${port}`]);
  } catch (error) {
    stop();
    forget();
    home.remove();
    throw new Error(
      `Citus does not start here: ${(error as { stderr: string }).stderr}`,
      { cause: error },
    );
  }
  const url = (node: number) =>
    `postgres://postgres@127.0.0.1:${port + node}/shop`;
  return {
    url: url(0),
    workerUrls: [url(1), url(2)],
    stop: async () => {
      stop();
      forget();
      home.remove();
    },
  };
}

/** The first of three consecutive free ports, which the script needs. */
async function threePorts(): Promise<number> {
  const [first, second, third] = [
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  return third - first === 2 && second - first === 1 ? first : threePorts();
}

/**
 * `reference`: a full copy on every node. A number: distributed by id over this
 * many shards.
 */
export type Layout = 'reference' | number;

/**
 * Distributes the tables of the service with the statements of docs/scale.md.
 */
export async function distribute(url: string, layout: Layout): Promise<void> {
  const [, block = ''] =
    /```sql\n(select create_reference_table[^`]*)```/.exec(
      readFileSync('docs/scale.md', 'utf8'),
    ) ?? [];
  const shared = block
    .split('\n')
    .filter(
      (line) =>
        line.includes('create_reference_table') && !line.includes("'pet'"),
    );
  await query(url, ...shared, distributionOf('pet', layout));
}

/** The statement that distributes a table. */
export function distributionOf(table: string, layout: Layout): string {
  const name = `'"${table}"'`;
  if (layout === 'reference') return `select create_reference_table(${name})`;
  return `select create_distributed_table(${name}, 'id', shard_count := ${layout})`;
}
