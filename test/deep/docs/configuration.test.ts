import { readFileSync } from 'node:fs';
import { ConfigError } from '../../../packages/environment/src/environment.ts';
import { loadConfig, variables } from '../../../src/config.ts';
import { expect, test } from '../../support/jest.ts';

/** docs/configuration.md is written by `npm run schema`, and compared by its `--check`: here is whether it is true. */
const rows = [
  ...readFileSync('docs/configuration.md', 'utf8').matchAll(/^\| `([A-Z_]+)` \| (.+?) \| (.+?) \| .+ \|$/gm),
].map(([, name = '', takes = '', otherwise = '']) => ({ name, takes, otherwise }));

test('it has every variable, once, in the order of the configuration', () => {
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(variables));
});

const numbers = rows.flatMap(({ name, takes }) => {
  const [, min, max] = /^(\d+) to (\d+)/.exec(takes) ?? [];
  return max && max !== '1' ? [{ name, min: Number(min), max: Number(max) }] : [];
});

test.each(numbers)('$name takes $min to $max, and nothing beyond', ({ name, min, max }) => {
  for (const value of [min, max]) expect(() => loadConfig({ [name]: `${value}` })).not.toThrow();
  for (const value of [min - 1, max + 1]) expect(() => loadConfig({ [name]: `${value}` })).toThrow(ConfigError);
});

test('the defaults are what holds without a variable', () => {
  const given = rows.filter(({ otherwise }) => otherwise !== 'none');
  const env = Object.fromEntries(given.map(({ name, otherwise }) => [name, otherwise.replaceAll('`', '')]));
  expect(loadConfig(env)).toEqual(loadConfig({}));
});

test('words that are listed are the only ones', () => {
  for (const { name, takes } of rows) {
    if (!/^(?:`\w+` ?)+$/.test(takes)) continue;
    for (const [, word = ''] of takes.matchAll(/`(\w+)`/g)) expect(() => loadConfig({ [name]: word })).not.toThrow();
    expect(() => loadConfig({ [name]: 'perhaps' })).toThrow(ConfigError);
  }
});
