import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  // What `npm test` has compiled of the tests that there are. Each worker is one Node.js process, which loads the service
  // once for all of its files.
  testMatch: globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).map(
    (path) => `<rootDir>/dist/${path.replace(/ts$/, 'js')}`,
  ),
  runner: '<rootDir>/dist/test/support/runner.js',
  transform: {},
  maxWorkers: Math.max(2, availableParallelism()),
};
