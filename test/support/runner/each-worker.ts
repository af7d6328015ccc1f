import { registerHooks } from 'node:module';
import { addEventHandler } from 'jest-circus';
import { shuffled } from './shuffled.ts';

/**
 * Jest's `setupFilesAfterEnv`, which runs once in each worker.
 * `jest-light-runner` neither provides `@jest/globals`, nor knows time limits
 * and `--randomize`.
 */

const functions = {
  url: new URL('../jest.js', import.meta.url).href,
  shortCircuit: true,
};
registerHooks({
  resolve: (name, context, next) =>
    name === '@jest/globals' ? functions : next(name, context),
});

interface Block {
  name: string;
  type: string;
  children?: Block[];
}

/** The tests of the file in progress, once they will be shuffled. */
let shuffledRoot: Block | undefined;

const seed = process.env.TEST_SEED;
if (seed) {
  addEventHandler((_event, { rootDescribeBlock: root }) => {
    if (shuffledRoot === root) return;
    shuffledRoot = root;
    root.hooks.unshift({
      type: 'beforeAll',
      fn: () => shuffle(root),
      parent: root,
    } as never);
  });
}

function shuffle({ children = [] }: Block): void {
  children.splice(
    0,
    children.length,
    ...shuffled(children, `${seed}`, ({ name }) => name),
  );
  for (const child of children) shuffle(child);
}
