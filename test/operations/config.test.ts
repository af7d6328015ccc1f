import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigError, loadConfig, variables } from '../../src/config.ts';
import { expect, test } from '../support/jest.ts';

const example = readFileSync('.env.example', 'utf8');
/** `NAME=default`, commented out when the default is none. */
const entries = [...example.matchAll(/^#? ?([A-Z][A-Z_\d]+)=(.*)$/gm)].map(([, name, value]) => ({ name, value }));

test('.env.example names every variable, once, in the order of the configuration', () => {
  expect(entries.map(({ name }) => name)).toEqual(Object.keys(variables));
});

test('.env.example says what every variable means', () => {
  for (const [name, { desc }] of Object.entries(variables)) {
    expect(example).toMatch(new RegExp(`^# ${escaped(desc ?? '')}.*\\n#? ?${name}=`, 'm'));
  }
});

test('.env.example shows the defaults: with it as it is, and with every line in force, nothing changes', () => {
  expect(loadConfig(parseEnv(example) as Record<string, string>)).toEqual(loadConfig({}));
  expect(loadConfig(Object.fromEntries(entries.map(({ name, value }) => [name, value])))).toEqual(loadConfig({}));
});

test('an empty variable counts as absent', () => {
  expect(loadConfig({ PORT: '', DATABASE_URL: '' })).toEqual(loadConfig({}));
});

test('a configuration names all its mistakes at once', () => {
  const mistakes = () => loadConfig({ PORT: 'x', DATABASE_POOL_MAX: '1', REQUEST_TIMEOUT_MS: '1.5' });
  expect(mistakes).toThrow(ConfigError);
  for (const name of ['PORT', 'DATABASE_POOL_MAX', 'REQUEST_TIMEOUT_MS']) expect(mistakes).toThrow(name);
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
