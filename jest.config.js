import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

// `npm test` runs what a developer wants to know at each save; `npm run test:deep` what takes long or foreign parts.
const quick = ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'];
const deep = 'test/deep/**';
const files = process.env.TEST_DEEP
  ? globSync(`${deep}/*.test.ts`, { exclude: ['**/node_modules'] })
  : globSync(quick, { exclude: ['**/node_modules', deep] });

/** @type {import('jest').Config} */
export default {
  // The compiled tests. Each worker is one thread, which loads the service once for all of its files.
  testMatch: files.map((path) => `<rootDir>/dist/${path.replace(/ts$/, 'js')}`),
  // Runs files in plain Node.js threads: the default runner's sandbox would load the service again for each file (5 s).
  runner: 'jest-light-runner',
  globalSetup: '<rootDir>/dist/test/support/run.js',
  globalTeardown: '<rootDir>/dist/test/support/run-end.js',
  reporters: ['default', '<rootDir>/dist/test/support/skipped.js'],
  transform: {},
  // The package that is made of the client has the client's name.
  modulePathIgnorePatterns: ['<rootDir>/clients/typescript/dist', '<rootDir>/release'],
  maxWorkers: Math.max(2, availableParallelism()),
};
