/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2024',
        },
        module: { type: 'es6' },
      },
    ],
  },
  // The sources of a build must not shadow those under test.
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/bench'],
  // Generous: no test depends on time, and the machines that run them are shared.
  testTimeout: 120_000,
  maxWorkers: 2,
};
