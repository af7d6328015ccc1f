import { url as inspectedAt } from 'node:inspector';
import type * as jest from '@jest/globals';
import { bind } from 'jest-each';

/**
 * Jest's functions with time limits, because `jest-light-runner` has none
 * (https://github.com/nicolo-ribaudo/jest-light-runner/issues/36).
 */
const {
  describe: group,
  expect,
  ...unlimited
} = globalThis as unknown as typeof jest;

export { expect };

let isSkipped = false;

/**
 * Skips each test of a group, because the runner would count a skipped group as
 * one test.
 */
function skipGroup(name: string, define: () => void): void {
  group(name, () => {
    const before = isSkipped;
    isSkipped = true;
    define();
    isSkipped = before;
  });
}

const run = (name: string, define: () => void): void => group(name, define);

export const describe = Object.assign(run, {
  each: group.each,
  only: group.only,
  skip: Object.assign(skipGroup, { each: bind(skipGroup as never) }),
}) as unknown as typeof jest.describe;

/**
 * Generous, because no test depends on time and the machines that run the tests
 * are shared. A debugger may take as long as it wants.
 */
const limit = inspectedAt() ? 2 ** 31 - 1 : 120_000;

type Work = () => unknown;

function within(milliseconds: number, name: string, work: Work): Work {
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`${name} took more than ${milliseconds} ms.`)),
        milliseconds,
      );
    });
    await Promise.race([Promise.resolve().then(work), tooLate]).finally(() =>
      clearTimeout(timer),
    );
  };
}

function limited(name: string, work: Work, milliseconds = limit): void {
  if (isSkipped) unlimited.test.skip(name, work as never);
  else unlimited.test(name, within(milliseconds, name, work) as never);
}

export const test = Object.assign(limited, {
  each: bind(limited as never),
  skip: unlimited.test.skip,
  only: unlimited.test.only,
}) as unknown as typeof jest.test;

type Hook = (work: Work) => unknown;
const hook = (
  name: 'beforeAll' | 'beforeEach' | 'afterAll' | 'afterEach',
): Hook => {
  return (work) =>
    isSkipped || (unlimited[name] as Hook)(within(limit, name, work));
};
export const beforeAll = hook('beforeAll');
export const beforeEach = hook('beforeEach');
export const afterAll = hook('afterAll');
export const afterEach = hook('afterEach');

/**
 * How many cases a generator makes: the share that GENERATED_CASES gives, a
 * tenth by default.
 *
 * @param variable an environment variable that gives the number instead
 */
export function cases(all: number, variable?: string): number {
  const given = variable && process.env[variable];
  return given
    ? Number(given)
    : Math.ceil(all * Number(process.env.GENERATED_CASES ?? 0.1));
}
