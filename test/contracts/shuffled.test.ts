import { expect, test } from '../support/jest.ts';
import Sequencer from '../support/runner/sequencer.ts';
import { shuffled } from '../support/runner/shuffled.ts';

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

const orderOf = (seed: string, items = names) =>
  shuffled(items, seed, (name) => name);

test('a seed repeats its order, and another seed has another one', () => {
  expect(orderOf('1')).toEqual(orderOf('1'));
  expect(orderOf('1')).not.toEqual(orderOf('2'));
  expect(orderOf('1').sort()).toEqual(names);
});

test('only names decide: neither the order before nor other items', () => {
  expect(orderOf('1', [...names].reverse())).toEqual(orderOf('1'));
  const some = orderOf('1').filter((name) => name < 'e');
  expect(orderOf('1', names.slice(0, 4))).toEqual(some);
});

test('a seed repeats the order of files in another folder', () => {
  const namesIn = (rootDir: string) => {
    const tests = names.map((name) => ({
      path: `${rootDir}/dist/test/${name}.test.js`,
      context: { config: { rootDir } },
    }));
    const globalConfig = { randomize: true, seed: 1, rootDir };
    const sequencer = new Sequencer({ globalConfig } as never);
    const sorted = sequencer.sort(tests as never) as typeof tests;
    return sorted.map(({ path }) => path.slice(rootDir.length));
  };
  expect(namesIn('/builds/42/store')).toEqual(namesIn('/home/ann'));
});
