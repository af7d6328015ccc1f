/**
 * Runs the tests of one package alone: `npm test -w packages/NAME`. @type
 * {import('jest').Config}
 */
export default {
  testMatch: ['<rootDir>/test/*.test.ts'],
  runner: 'jest-light-runner',
  setupFiles: [`${import.meta.dirname}/jest-globals.js`],
  transform: {},
};
