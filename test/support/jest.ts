import type * as jest from '@jest/globals';
import { bind } from 'jest-each';

/**
 * Jest's functions, with a time limit for each: `jest-light-runner` has none
 * (https://github.com/nicolo-ribaudo/jest-light-runner/issues/36).
 */
const { describe, expect, ...unlimited } = globalThis as unknown as typeof jest;

export { describe, expect };

/** Generous: no test depends on time, and the machines that run them are shared. */
const limit = 120_000;

type Work = () => unknown;

function within(milliseconds: number, what: string, work: Work): Work {
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${what} took more than ${milliseconds} ms.`)), milliseconds);
    });
    await Promise.race([Promise.resolve().then(work), tooLate]).finally(() => clearTimeout(timer));
  };
}

const limited = (name: string, work: Work, milliseconds = limit) =>
  unlimited.test(name, within(milliseconds, name, work) as never);

export const test = Object.assign(limited, {
  each: bind(limited as never),
  skip: unlimited.test.skip,
  only: unlimited.test.only,
}) as unknown as typeof jest.test;

type Hook = (work: Work) => void;
const hook = (name: 'beforeAll' | 'beforeEach' | 'afterAll' | 'afterEach'): Hook => {
  return (work) => (unlimited[name] as Hook)(within(limit, name, work));
};
export const beforeAll = hook('beforeAll');
export const beforeEach = hook('beforeEach');
export const afterAll = hook('afterAll');
export const afterEach = hook('afterEach');
