import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';

const { TEST_DEEP, TEST_RUN: run = 'embedded' } = process.env;

// `npm test` runs what a developer wants to know at each save, `npm run
// test:deep` what takes long or needs other programs, and `npm run test:all` both.
const exclude = ['**/node_modules'];
const deep = globSync('test/deep/**/*.test.ts', { exclude });
const quick = globSync('test/**/*.test.ts', {
  exclude: [...exclude, 'test/deep/**'],
});
const files =
  { only: deep, too: [...quick, ...deep] }[TEST_DEEP ?? ''] ?? quick;
const isEmbedded = run === 'embedded';

// Node.js strips the types of these, which are in one folder with what they
// test.
const packages =
  TEST_DEEP !== 'only' && isEmbedded
    ? globSync('packages/*/test/*.test.ts')
    : [];

// Every file runs on the embedded store. `.ci/run` repeats the files of the
// folders in `runs` on other databases, and with a plugin of Apollo Server
// (TEST_RUN). A line such as `// runs: embedded, postgres` in a file replaces
// the runs of its folder.
const servers = ['postgres', 'pgbouncer'];
const databases = [...servers, 'citus-shards'];
const versions = [...databases, 'postgres-12', 'postgres-18'];
/** @type {Record<string, string[]>} */
const runs = {
  'test/database': versions,
  'test/graphql': ['plugins'],
  'test/keys': servers,
  'test/modules': versions,
  'test/parity': versions,
  'test/deep/database': databases,
  'test/deep/parity': databases,
};
const all = [
  'embedded',
  'citus-reference',
  ...new Set(Object.values(runs).flat()),
];

/** Whether a file belongs to the run. */
function isWanted(/** @type {string} */ file) {
  const [, line] = /^\/\/ runs: (.*)$/m.exec(readFileSync(file, 'utf8')) ?? [];
  const named = line?.split(', ') ?? runs[dirname(file)] ?? [];
  const unknown = [run, ...named].filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new Error(`${file}: no run is named ${unknown}; there are ${all}`);
  return isEmbedded || named.includes(run);
}

/** @type {import('jest').Config} */
export default {
  rootDir: '..',
  // The compiled tests. Each worker is one thread, which loads the service once
  // for all of its files.
  testMatch: [
    ...files
      .filter(isWanted)
      .map((path) => `<rootDir>/dist/${path.replace(/ts$/, 'js')}`),
    ...packages.map((path) => `<rootDir>/${path}`),
  ],
  // Runs files in plain Node.js threads: the default runner's sandbox would
  // load the service again for each file (5 s).
  runner: 'jest-light-runner',
  setupFilesAfterEnv: ['<rootDir>/dist/test/support/runner/each-worker.js'],
  // `--randomize` shuffles files, and the tests of each; the end of the run
  // says `Seed:`, for `--randomize --seed=...`.
  testSequencer: '<rootDir>/dist/test/support/runner/sequencer.js',
  globalSetup: '<rootDir>/dist/test/support/runner/global-setup.js',
  reporters: ['default', '<rootDir>/dist/test/support/runner/skipped.js'],
  transform: {},
  // The package that is made of the client has the client's name.
  modulePathIgnorePatterns: [
    '<rootDir>/clients/typescript/dist',
    '<rootDir>/release',
  ],
  maxWorkers: Math.max(2, availableParallelism()),
};
