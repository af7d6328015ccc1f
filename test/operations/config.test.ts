import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { allVariables, loadConfig } from '#engine/config/config.js';
import type { Variables } from '#engine/config/variables.js';
import { features } from '../../src/features.ts';
import { expect, test } from '../support/jest.ts';

const example = readFileSync('.env.example', 'utf8');
/** A comment, then `NAME=default`, commented out when the default is none. */
const entries = [
  ...example.matchAll(/^# (.+)\n#? ?([A-Z][A-Z_\d]+)=(.*)$/gm),
].map(([, comment, name, value]) => ({
  comment,
  name,
  value,
}));

test('.env.example has every variable once, with its description', () => {
  const all: Variables = allVariables(features);
  // A variable of a deleted feature has no description.
  const expected = Object.keys(all).filter((name) => all[name]?.desc);
  expect(entries.map(({ name }) => name).sort()).toEqual(expected.sort());
  const others = entries.filter(
    ({ name = '', comment = '' }) => !comment.startsWith(all[name]?.desc ?? ''),
  );
  expect(others).toEqual([]);
});

test('.env.example shows the defaults: unchanged or with every line uncommented, it gives the same configuration', () => {
  const load = (env: Record<string, string>) => ({
    ...loadConfig(env, features),
    env: undefined,
  });
  expect(load(parseEnv(example) as Record<string, string>)).toEqual(load({}));
  expect(
    load(Object.fromEntries(entries.map(({ name, value }) => [name, value]))),
  ).toEqual(load({}));
});

const address = 'postgres://127.0.0.1/shop';

test.each([
  [
    'postgres://a:secret@127.0.0.1/shop;postgres://b:secret@127.0.0.1/shop',
    'must be a postgres:// address',
  ],
  [
    'postgres://127.0.0.1/shop postgres://127.0.0.2/shop',
    'must be a postgres:// address',
  ],
  [
    'postgres://127.0.0.1/shop?sslmode=sometimes',
    'has an sslmode that is none of disable, allow',
  ],
  ['mysql://127.0.0.1/shop', 'must be a postgres:// address'],
  ...['pa%ss', '100%', '%ff'].map((password) => [
    `postgres://a:secret${password}@127.0.0.1/shop`,
    'has a % that encodes no character: write %25',
  ]),
  ['postgres://127.0.0.1/shop%', 'has a % that encodes no character'],
  ...['postgres://127.0.0.1', 'postgres://a:secret@127.0.0.1:5432/?x=1'].map(
    (url) => [url, 'must name a database: postgres://host/database'],
  ),
])('the address %s is refused with the name of its variable', (url, reason) => {
  for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL']) {
    const load = () => loadConfig({ DATABASE_URL: address, [name]: url });
    expect(load).toThrow(`${name} ${reason}`);
    expect(load).not.toThrow('secret');
  }
});

test.each([
  [
    'postgresql://u:x@/db?host=/cloudsql/p:r:i',
    'postgresql://u:x@localhost/db?host=/cloudsql/p:r:i',
  ],
  ['postgres://u@/db?host=/run', 'postgres://u@localhost/db?host=/run'],
  ['postgres://u@:5433/db', 'postgres://u@localhost:5433/db'],
  ...[
    'postgres:///db?host=/run',
    'postgres://u:a%25b@%2Frun/db',
    'postgres://u:x@h/db?options=-c%20a%3D@/b',
  ].map((url) => [url, url]),
])('the address %s of a socket is read as %s', (url, read) => {
  const { database } = loadConfig({
    DATABASE_URL: url,
    DATABASE_DIRECT_URL: url,
  });
  expect(database).toMatchObject({
    url: read,
    directUrl: read,
  });
});

const several =
  'DATABASE_URL names several hosts; it takes one (docs/scale.md, Failover)';

test.each([
  [{ DATABASE_URL: 'postgres://user:p,w@a:5432,b:5432/shop' }, several],
  [
    { DATABASE_URL: 'postgres://a,b/shop?target_session_attrs=read-write' },
    several,
  ],
  [
    { DATABASE_DIRECT_URL: address },
    'DATABASE_DIRECT_URL has no effect without DATABASE_URL',
  ],
  ...[
    'https://shop.example/',
    'https://shop.example/a',
    'shop.example',
    'https://a.example,*',
  ].map((CORS_ORIGINS): [Record<string, string>, string] => [
    { CORS_ORIGINS },
    'CORS_ORIGINS must be origins like https://shop.example',
  ]),
])('%j is refused', (env, reason) =>
  expect(() => loadConfig(env)).toThrow(reason),
);

test('a drain takes longer than a request, unless it is configured', () => {
  const drainOf = (env: Record<string, string>) => loadConfig(env).drainTimeout;
  expect(drainOf({})).toBe(15_000);
  const DATABASE_STATEMENT_TIMEOUT_MS = '30000';
  expect(drainOf({ DATABASE_STATEMENT_TIMEOUT_MS })).toBe(35_000);
  const DRAIN_TIMEOUT_MS = '500';
  expect(drainOf({ DATABASE_STATEMENT_TIMEOUT_MS, DRAIN_TIMEOUT_MS })).toBe(
    500,
  );
});
