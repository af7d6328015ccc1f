import { registerHooks } from 'node:module';

// `jest-light-runner` runs tests in plain Node.js, where Jest's functions are
// globals and `@jest/globals` throws.
const source = `export const { ${['describe', 'expect', 'it', 'test', 'beforeAll', 'beforeEach', 'afterAll', 'afterEach'].join(', ')} } = globalThis;`;
const url = `data:text/javascript,${encodeURIComponent(source)}`;

registerHooks({
  resolve: (name, context, next) =>
    name === '@jest/globals'
      ? { url, shortCircuit: true }
      : next(name, context),
});
