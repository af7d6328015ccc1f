import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './measure.ts';
import { ourProgram } from './programs.ts';
import { type Cell, type StartResult, table } from './report.ts';
import { workloads } from './workloads.ts';

const peers = {
  'ours-rest': 'fastify-pg-duties',
  'ours-graphql': 'mercurius-duties',
};
const apis = Object.entries(peers);

/**
 * The service's figures divided by those of the peer in the same round; medians
 * of the rounds.
 */
export function aloneTables(
  starts: StartResult[],
  cells: Cell[],
  commands: string[][],
): string[] {
  const ratio = (ours: number[], theirs: number[]) =>
    ours.length > 0
      ? median(ours.map((one, at) => one / (theirs[at] as number))).toFixed(2)
      : '-';
  const compared = (title: string, value: (cell: Cell) => number) =>
    Object.keys(workloads).flatMap((workload) => {
      const of = (system: string, count: number) =>
        cells
          .filter(
            (cell) =>
              cell.system === system &&
              cell.workload === workload &&
              cell.connections === count,
          )
          .sort((a, b) => a.round - b.round)
          .map(value);
      const counts = [1, 32];
      const row = apis.flatMap(([ours, peer]) =>
        counts.map((count) => ratio(of(ours, count), of(peer, count))),
      );
      return row.every((one) => one === '-')
        ? []
        : [[`${title}: ${workload}`, ...row]];
    });
  const started = (title: string, value: (start: StartResult) => number) => {
    const of = (id: string) =>
      starts.filter(({ system }) => system === id).map(value);
    return [
      title,
      ...apis.flatMap(([ours, peer]) => [ratio(of(ours), of(peer)), '']),
    ];
  };
  return [
    '## Ours divided by hand-written code with the same duties',
    '',
    ...table(
      [
        '',
        'REST, 1 connection',
        'REST, 32',
        'GraphQL, 1 connection',
        'GraphQL, 32',
      ],
      [
        ...compared('CPU of the server', ({ serverMicros }) => serverMicros),
        ...compared(
          'CPU of PostgreSQL',
          ({ postgresBusy, perSecond }) => postgresBusy / perSecond,
        ),
        started('first response', ({ startTime }) => startTime),
        started('idle RSS', ({ idleMiB }) => idleMiB),
      ],
    ),
    '',
    ...table(['command', 'ms', 'ratio'], commands),
    '',
  ];
}

/**
 * Times `keys list` beside an empty Node.js, and the first start of a clone
 * with its packages installed.
 */
export async function timeCommands(databaseUrl: string): Promise<string[][]> {
  const env = { ...ourProgram.env(databaseUrl), PATH: process.env.PATH };
  const time = (args: string[], command = process.execPath) => {
    const began = performance.now();
    const { status } = spawnSync(command, args, { cwd: ourProgram.cwd, env });
    if (status !== 0)
      throw new Error(`${args.join(' ')} ended with ${status}.`);
    return performance.now() - began;
  };
  const pairs = Array.from({ length: 9 }, () => ({
    empty: time(['-e', '0']),
    list: time([join(ourProgram.cwd, 'bin/animal-store.js'), 'keys', 'list']),
    withNpm: time(['run', '--silent', 'store', '--', 'keys', 'list'], 'npm'),
    npm: time(['--version'], 'npm'),
  }));
  const row = (title: string, of: keyof (typeof pairs)[number]) => [
    title,
    median(pairs.map((pair) => pair[of])).toFixed(0),
    median(pairs.map((pair) => pair[of] / pair.empty)).toFixed(2),
  ];
  const first = await firstStart();
  return [
    row('`node -e 0`', 'empty'),
    row('`keys list` of a built store', 'list'),
    row('`npm run store -- keys list`', 'withNpm'),
    row('`npm --version`', 'npm'),
    ['first start of a clone, to its first answer', first.toFixed(0), ''],
  ];
}

/**
 * Copies the sources without what was built, and starts the copy on a new
 * embedded store. @returns milliseconds
 */
async function firstStart(): Promise<number> {
  const { cwd } = ourProgram;
  const clone = mkdtempSync(join(tmpdir(), 'animal-store-clone-'));
  const tracked = execFileSync(
    'git',
    [
      'ls-files',
      '-z',
      'bin',
      'docs',
      'migrations',
      'packages',
      'src',
      'tools',
      'web',
    ],
    {
      cwd,
      encoding: 'utf8',
    },
  );
  const others = [
    'package.json',
    'tsconfig.json',
    'README.md',
    'SECURITY.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
  ];
  for (const path of [...tracked.split('\0').filter(Boolean), ...others])
    cpSync(join(cwd, path), join(clone, path));
  symlinkSync(join(cwd, 'node_modules'), join(clone, 'node_modules'));
  const port = 20_000 + (process.pid % 10_000);
  const began = performance.now();
  const env = {
    PATH: process.env.PATH,
    PORT: `${port}`,
    HOST: '127.0.0.1',
    ANIMAL_STORE_ENV_FILE: '',
  };
  const child = spawn(process.execPath, ['bin/animal-store.js', 'start'], {
    cwd: clone,
    env,
    stdio: 'ignore',
  });
  try {
    while (child.exitCode === null && performance.now() - began < 120_000) {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(
        () => undefined,
      );
      if (answer?.ok) return performance.now() - began;
      await sleep(20);
    }
    throw new Error('The clone has not answered.');
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill('SIGTERM')) await ended;
    rmSync(clone, { recursive: true, force: true });
  }
}
