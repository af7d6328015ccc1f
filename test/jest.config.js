import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { filesOf } from './runs.ts';

const { TEST_DEEP, TEST_RUN: run = 'embedded' } = process.env;
// `npm test` runs what a developer wants to know at each save, `npm run
// test:deep` what takes long or foreign parts, and `npm run test:all` both.
const folder = 'test/deep/**';
const deep = globSync(`${folder}/*.test.ts`, { exclude: ['**/node_modules'] });
const quick = globSync('test/**/*.test.ts', {
  exclude: ['**/node_modules', folder],
});
// Node.js strips the types of these, which are in one folder with what they
// test.
const packages = globSync('packages/*/test/*.test.ts').map(
  (path) => `<rootDir>/${path}`,
);
const files =
  { only: deep, too: [...quick, ...deep] }[TEST_DEEP ?? ''] ?? quick;

/** @type {import('jest').Config} */
export default {
  rootDir: '..',
  // The compiled tests. Each worker is one thread, which loads the service once
  // for all of its files.
  testMatch: [
    ...filesOf(run, files).map(
      (path) => `<rootDir>/dist/${path.replace(/ts$/, 'js')}`,
    ),
    ...(TEST_DEEP === 'only' || run !== 'embedded' ? [] : packages),
  ],
  // Runs files in plain Node.js threads: the default runner's sandbox would
  // load the service again for each file (5 s).
  runner: 'jest-light-runner',
  setupFilesAfterEnv: ['<rootDir>/dist/test/support/runner/setup.js'],
  // `--randomize` shuffles files, and the tests of each; the end of the run
  // says `Seed:`, for `--randomize --seed=...`.
  testSequencer: '<rootDir>/dist/test/support/runner/sequencer.js',
  globalSetup: '<rootDir>/dist/test/support/runner/run.js',
  reporters: ['default', '<rootDir>/dist/test/support/runner/skipped.js'],
  transform: {},
  // The package that is made of the client has the client's name.
  modulePathIgnorePatterns: [
    '<rootDir>/clients/typescript/dist',
    '<rootDir>/release',
  ],
  maxWorkers: Math.max(2, availableParallelism()),
};
