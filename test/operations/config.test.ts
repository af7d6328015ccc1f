import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigError } from '../../packages/environment/src/environment.ts';
import { loadConfig, variables } from '../../src/config.ts';
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

test.each([
  ['postgres://a:secret@127.0.0.1/shop;postgres://b:secret@127.0.0.1/shop', 'must be a postgres:// address'],
  ['postgres://127.0.0.1/shop postgres://127.0.0.2/shop', 'must be a postgres:// address'],
  ['postgres://127.0.0.1/shop?sslmode=sometimes', 'has an sslmode that is none of disable, allow'],
  ['mysql://127.0.0.1/shop', 'must be a postgres:// address'],
])('the address %s is refused by its name', (url, why) => {
  for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATABASE_READ_URLS']) {
    const mistaken = () => loadConfig({ DATABASE_URL: 'postgres://127.0.0.1/shop', [name]: url });
    expect(mistaken).toThrow(`${name} ${why}`);
    expect(mistaken).not.toThrow('secret');
  }
});

test.each(['postgres://user:p,w@a:5432,b:5432/shop', 'postgres://a,b/shop?target_session_attrs=read-write'])(
  'several hosts are refused: %s',
  (url) => {
    const why = 'DATABASE_URL names several hosts; it takes one (docs/scale.md, Failover)';
    expect(() => loadConfig({ DATABASE_URL: url })).toThrow(why);
  },
);

test.each(['DATABASE_DIRECT_URL', 'DATABASE_READ_URLS'])('%s without DATABASE_URL is a mistake', (name) => {
  expect(() => loadConfig({ [name]: 'postgres://127.0.0.1/shop' })).toThrow(
    `${name} has no effect without DATABASE_URL`,
  );
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
