import { loadConfig } from '#engine/config/config.js';
import { tokens } from '#engine/features/tokens/index.js';
import { expect, test } from '../../support/jest.ts';

const env = { JWT_AUDIENCE: 'https://animals.example' };

test.each([
  'ftp://a',
  'a',
  'https://a/?b',
  'https://a/#b',
  'https://user:hunter2@a/',
  'https://hunter2@a/',
])(
  'the address of a provider is not %s, and the error quotes no password',
  (text) => {
    const error =
      'JWT_ISSUER must be an https:// or http:// address without a query and a password';
    expect(() => loadConfig({ ...env, JWT_ISSUER: text }, [tokens])).toThrow(
      new Error(`Configuration error:\n  ${error}`),
    );
  },
);

test.each([
  [
    { JWT_ISSUER: 'https://a' },
    'JWT_ISSUER has no effect without JWT_AUDIENCE',
  ],
  [env, 'JWT_AUDIENCE has no effect without JWT_ISSUER'],
  [
    { JWT_SCOPES: 'read,write=write' },
    'JWT_SCOPES must be names with read, write or all',
  ],
])('%j is refused', (given, reason) =>
  expect(() => loadConfig(given, [tokens])).toThrow(reason),
);
