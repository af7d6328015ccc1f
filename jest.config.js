import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  // The compiled tests. Each worker is one thread, which loads the service once for all of its files.
  testMatch: globSync(['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'], { exclude: ['**/node_modules'] }).map(
    (path) => `<rootDir>/dist/${path.replace(/ts$/, 'js')}`,
  ),
  // Runs files in plain Node.js threads: the default runner's sandbox would load the service again for each file (5 s).
  runner: 'jest-light-runner',
  globalSetup: '<rootDir>/dist/test/support/run.js',
  globalTeardown: '<rootDir>/dist/test/support/run-end.js',
  transform: {},
  maxWorkers: Math.max(2, availableParallelism()),
};
