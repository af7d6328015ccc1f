import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { coreVariables } from '#engine/config/config.js';
import { misspelt, readEnvFile } from '#engine/config/env-file.js';
import { decodedText, readText } from '#engine/config/text-file.js';
import { newFolder } from '../support/folder.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';

/**
 * A file that an operator writes is read in each form that editors give it, or
 * refused with its line.
 */

let folder: string;
beforeAll(async () => {
  folder = await newFolder();
});

function write(content: string | Buffer): string {
  const path = join(folder, '.env');
  writeFileSync(path, content);
  return path;
}

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const env = 'PORT=5000\nNAME="Ünïcode\u2028😀"\n';
const forms: Record<string, Buffer> = {
  'UTF-8': Buffer.from(env),
  'UTF-8 with a mark': Buffer.from(`\ufeff${env}`),
  'UTF-16 LE': utf16(env),
  'UTF-16 BE': utf16(env).swap16(),
  'CR LF': Buffer.from(env.replaceAll('\n', '\r\n')),
  'CR alone': Buffer.from(env.replaceAll('\n', '\r')),
  'UTF-16 with CR LF': utf16(env.replaceAll('\n', '\r\n')),
  'no line end': Buffer.from(env.trimEnd()),
};

test.each(Object.entries(forms))('%s is read', (_form, bytes) => {
  const path = write(bytes);
  const text = readText(path);
  expect(text.trimEnd()).toBe(env.trimEnd());
  expect(readEnvFile(path)).toEqual({
    PORT: '5000',
    NAME: 'Ünïcode\u2028😀',
  });
});

test.each([
  ['UTF-16 without a mark', Buffer.from(env, 'utf16le'), 1],
  ['a NUL', Buffer.from('A=1\nB=\0\n'), 2],
  ['Latin-1', Buffer.from('A=1\r\n\r\nB=\xfc\n', 'latin1'), 3],
])('%s is refused with its line', (_form, bytes, line) => {
  const message = `line ${line} is not UTF-8: save the file as UTF-8`;
  expect(() => decodedText(bytes)).toThrow(message);
  const path = write(bytes);
  expect(() => readEnvFile(path)).toThrow(`${path} cannot be read: ${message}`);
});

test('a folder in the place of a file, and a missing file, are named', () => {
  const path = join(folder, 'a folder');
  mkdirSync(path);
  expect(() => readText(path)).toThrow(
    `${path} cannot be read: it is a folder`,
  );
  const missing = join(folder, 'missing');
  expect(() => readText(missing, 'the keys')).toThrow(
    `the keys cannot be read: ENOENT: no such file or directory, open '${missing}'`,
  );
});

describe('.env', () => {
  test.each([
    '',
    '\n \n\t\n',
    '# PORT: 5000\n  # comment\n',
    'A=1',
    ' A = 1 # comment',
    'export A=1',
    'A=',
    'A=""',
    'A=\'it\nhas "lines"\'\nB=1',
    'A=`a\'b"c`',
    'A="x" # comment',
    'A.b-c=1',
    'A=a"b',
    `A=$${'{B}'}`,
    'A="a=b"\n\nB=c=d',
  ])('%j is understood', (text) => {
    expect(readEnvFile(write(text))).toBeDefined();
  });

  test.each(['A= \nB=1', 'A=\t\nB=1', ' export A =  \n\nB=1', 'A= \r\nB=1'])(
    '%j sets an empty variable, and the next one',
    (text) => {
      expect(readEnvFile(write(text))).toEqual({ A: '', B: '1' });
    },
  );

  test.each([
    ['export\tA=1', 1],
    ['PORT: 5000', 1],
    ['A=1\n\nPORT 5000\n', 3],
    ['set PORT=5000', 1],
    ['A=1\nB="x\nC=2\n', 2],
    ["A='x", 1],
    ['A="1"\n"B"=2\n', 2],
    ['A="1\n2"\nPORT\n', 3],
    ['{"PORT": 5000}', 1],
    ['=1', 1],
  ])('%j is refused with its line', (text, line) => {
    const path = write(text);
    expect(() => readEnvFile(path)).toThrow(
      `${path}, line ${line} sets no variable: write NAME=value, and close quotes`,
    );
  });
});

describe('a name that nothing reads', () => {
  const known = Object.keys(coreVariables);
  test.each([
    ['DRAIN_DELAY_M', 'DRAIN_DELAY_MS'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['DATABASE_ULR', 'DATABASE_URL'],
    ['DATABASE-URL', 'DATABASE_URL'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['CORS_ORIGIN', 'CORS_ORIGINS'],
    ['TRUSTPROXY', 'TRUST_PROXY'],
    ['port', 'PORT'],
    ['PROT', 'PORT'],
  ])('%s: did you mean %s?', (name, meant) => {
    expect(misspelt(['PORT', name], known)).toEqual([
      `${name} is not read: did you mean ${meant}?`,
    ]);
  });

  test('is not named when it is foreign', () => {
    const foreign =
      'PATH HOME HOSTNAME PWD SHELL LANG LC_ALL TZ USER TERM NODE_ENV NODE_OPTIONS PGHOST PGPORT PGUSER POSTGRES_PASSWORD REDIS_HOST REDIS_PORT DATABASE_PORT DATABASE_HOST DATABASE_SERVICE_HOST APP_PORT JWT_SECRET LOG_FILE AWS_REGION KUBERNETES_PORT OTEL_SERVICE_NAME npm_config_cache INIT_CWD ANIMAL_STORE_ENV_FILE ANIMAL_STORE_PORT';
    expect(misspelt(foreign.split(' '), known)).toEqual([]);
    expect(misspelt(known, known)).toEqual([]);
  });
});
