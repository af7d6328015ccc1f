import { readFileSync } from 'node:fs';

/**
 * The runs of `.ci/run`: one for each kind of database, and one in which Apollo
 * Server has a plugin (TEST_RUN).
 */
const runs = [
  'embedded',
  'postgres',
  'pgbouncer',
  'citus-shards',
  'citus-reference',
  'postgres-12',
  'postgres-18',
  'plugins',
];

const oncePerKind = ['embedded', 'postgres', 'pgbouncer', 'citus-shards'];

/** What each statement gives, also on the oldest and the newest PostgreSQL. */
const statements = [...oncePerKind, 'postgres-12', 'postgres-18'];

/**
 * Every folder of tests, with the runs that take its files. Every test runs on
 * the embedded store. A file that differs from its folder says so in a line of
 * its own: `// runs: embedded, postgres`.
 */
const folders: Record<string, string[]> = {
  // Quick: `npm test`.
  'packages/*/test': ['embedded'],
  'test/cli': ['embedded'],
  'test/contracts': ['embedded'],
  'test/database': statements,
  'test/features/*': ['embedded'],
  'test/graphql': ['embedded', 'plugins'],
  'test/keys': ['embedded', 'postgres', 'pgbouncer'],
  'test/modules': statements,
  'test/operations': ['embedded'],
  'test/parity': statements,
  'test/repository': ['embedded'],
  'test/rest': ['embedded'],
  // Deep: `npm run test:deep`.
  'test/deep/attack': ['embedded'],
  'test/deep/browser': ['embedded'],
  'test/deep/cli': ['embedded'],
  'test/deep/clients': ['embedded'],
  'test/deep/database': oncePerKind,
  'test/deep/docs': ['embedded'],
  'test/deep/examples': ['embedded'],
  'test/deep/features/*': ['embedded'],
  'test/deep/fuzz': ['embedded'],
  'test/deep/graphql': ['embedded'],
  'test/deep/keys': ['embedded'],
  'test/deep/operations': ['embedded'],
  'test/deep/parity': oncePerKind,
  'test/deep/rest': ['embedded'],
};

/**
 * @throws Error for a test file in another folder, or one that names an unknown
 *   run
 */
export function runsOf(
  file: string,
  text = readFileSync(file, 'utf8'),
): string[] {
  const folder = file
    .replace(/\/[^/]*$/, '')
    .replace(/^packages\/[^/]+\//, 'packages/*/')
    .replace(/^(test\/(?:deep\/)?features)\/[^/]+$/, '$1/*');
  const usual = folders[folder];
  if (!usual)
    throw new Error(`${file}: tests are in a folder that test/runs.ts lists`);
  const [, line] = /^\/\/ runs: (.*)$/m.exec(text) ?? [];
  const named = line?.split(', ') ?? usual;
  const unknown = named.filter((run) => !runs.includes(run));
  if (unknown.length > 0)
    throw new Error(
      `${file}: unknown in "// runs:": ${unknown}; the runs are ${runs.join(', ')}`,
    );
  if (named[0] !== 'embedded')
    throw new Error(
      `${file}: "// runs:" begins with embedded, which runs every test`,
    );
  return named;
}

/** The files of a run (`TEST_RUN`); without one, all. */
export function filesOf(run: string | undefined, files: string[]): string[] {
  if (run && !runs.includes(run))
    throw new Error(`TEST_RUN=${run} is none of ${runs.join(', ')}`);
  return files.filter((file) => runsOf(file).includes(run || 'embedded'));
}
