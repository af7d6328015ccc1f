import {
  checkedPostgresUrl,
  commaSeparated,
  flag,
  kind,
  logLevel,
  port,
  readVariables,
  secret,
  share,
  text,
  trustedProxies,
  whole,
  withoutSecrets,
} from '#engine/config/variables.js';
import { expect, test } from '../support/jest.ts';

const postgresUrls = kind('addresses', (text) =>
  commaSeparated(text).map(checkedPostgresUrl),
);
const variables = {
  PORT: port(4000, 'TCP port.'),
  SAMPLE: share(1, 'Share of the lines.'),
  VERBOSE: flag(false, 'Says more.'),
  KEY: secret(undefined, 'A key.'),
  READ_URLS: postgresUrls(undefined, 'Servers.'),
};
const read = (env: Record<string, string>) => readVariables(variables, env);

test('absent and empty variables have their defaults', () => {
  const defaults = {
    PORT: 4000,
    SAMPLE: 1,
    VERBOSE: false,
    KEY: undefined,
    READ_URLS: undefined,
  };
  expect(read({})).toEqual(defaults);
  expect(read({ PORT: '', KEY: '' })).toEqual(defaults);
});

test('values have types', () => {
  const key = 'k'.repeat(32);
  expect(
    read({
      PORT: '80',
      SAMPLE: '.5',
      VERBOSE: 'true',
      KEY: key,
      READ_URLS: 'postgres://a/s, postgres://b/s',
    }),
  ).toEqual({
    PORT: 80,
    SAMPLE: 0.5,
    VERBOSE: true,
    KEY: key,
    READ_URLS: ['postgres://a/s', 'postgres://b/s'],
  });
});

test.each([
  ['10.0.0.0/8, ::1, fd00::/8, loopback', true],
  ['10.0.0.0/33', false],
  ['10.0.0.0/0', false],
  ['10.0.0.0/8/8', false],
  ['fd00::/129', false],
  ['10.0.0.256', false],
  ['100', false],
  ['face', false],
  ['LOOPBACK', false],
])('trusted proxies %s are valid: %s', (text, isValid) => {
  const { parse } = trustedProxies(false, 'Proxies.');
  if (isValid) expect(parse(text)).toEqual(text.split(', '));
  else expect(() => parse(text)).toThrow('must be `false`, a number of hops');
});

test('the documented values of a variable are those that it accepts', () => {
  const range = whole(2, 7)(3, 'A number.');
  expect(range.takes).toBe('2 to 7');
  expect([range.parse('2'), range.parse('7')]).toEqual([2, 7]);
  for (const text of ['1', '8'])
    expect(() => range.parse(text)).toThrow(
      'must be a whole number between 2 and 7',
    );
  const level = logLevel('info', 'A level.');
  for (const [, word = ''] of level.takes.matchAll(/`(\w+)`/g))
    expect(level.parse(word)).toBe(word);
  expect(() => level.parse('perhaps')).toThrow(
    'must be one of fatal, error, warn, info, debug, trace, silent',
  );
});

test('one error lists every mistake, and quotes no secret', () => {
  const env = {
    PORT: '0',
    SAMPLE: '2',
    VERBOSE: 'yes',
    KEY: 'hunter2',
    READ_URLS: 'mysql://u:hunter2@a/s',
  };
  const KEY = secret(undefined, 'A key.', 'LOCK');
  const dependent = { ...variables, KEY };
  expect(() => readVariables(dependent, env)).toThrow(
    new Error(`Configuration error:
  PORT must be a whole number between 1 and 65535, not "0"
  SAMPLE must be a number between 0 and 1, not "2"
  VERBOSE must be true or false, not "yes"
  KEY must be at least 32 letters, digits or -._~+/ (RFC 6750), hard to guess
  READ_URLS must be a postgres:// address
  KEY has no effect without LOCK`),
  );
});

test.each([' a', 'a\r\n', '\na\t'])(
  'white space around a value is none of it: %j',
  (NAME) => {
    const names = { NAME: text(undefined, 'A name.') };
    expect(readVariables(names, { NAME })).toEqual({ NAME: 'a' });
  },
);

test('a value is more than white space', () => {
  const names = { NAME: text(undefined, 'A name.') };
  expect(() => readVariables(names, { NAME: ' \n' })).toThrow(
    new Error(`Configuration error:
  NAME is white space alone`),
  );
});

test('a log shows no secrets', () => {
  const values = read({
    KEY: 'k'.repeat(32),
    READ_URLS: 'postgres://u:hunter2@a:5433/s?sslkey=/k',
  });
  const expected = {
    PORT: 4000,
    SAMPLE: 1,
    VERBOSE: false,
    KEY: 'set',
    READ_URLS: ['postgres://a:5433/s'],
  };
  expect(withoutSecrets(variables, values)).toEqual(expected);
});
