import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { forTerminal } from '#engine/runtime/log/terminal.js';
import { newFolder } from '../../support/folder.ts';
import { expect, test } from '../../support/jest.ts';
import { runCommand } from '../../support/process.ts';

/** The line on a terminal without colours and without its time. */
function shown(line: object): string {
  const text = forTerminal(
    `${JSON.stringify({ level: 30, time: 0, pid: 1, host: 'vm', ...line })}\n`,
  );
  const plain = text.replace(/\x1b\[\d+m/g, '');
  expect(plain).toMatch(/^\d\d:\d\d:\d\d \S.*\n/);
  return plain.slice(9, -1);
}

test('a terminal gets a short line for each request', () => {
  const req = { method: 'GET', path: '/v1/pets' };
  const request = {
    reqId: '1',
    req,
    api: 'rest',
    operation: 'listPets',
    ms: 12.3,
  };
  const graphql = {
    ...request,
    req: { method: 'POST', path: '/graphql' },
    api: 'graphql',
    operation: undefined,
  };
  for (const [line, text] of [
    [
      { ...request, status: 200, key: 1, msg: 'answered' },
      'GET /v1/pets 200 12 ms key 1',
    ],
    [
      { ...request, status: 401, code: 'UNAUTHENTICATED', msg: 'answered' },
      'GET /v1/pets 401 UNAUTHENTICATED 12 ms',
    ],
    [
      { ...request, msg: 'aborted by the client' },
      'GET /v1/pets aborted by the client 12 ms',
    ],
    [
      { ...graphql, fields: ['pets', 'pet'], status: 200, msg: 'answered' },
      'POST /graphql pets pet 200 12 ms',
    ],
  ] as const) {
    expect(shown(line)).toBe(text);
  }
});

test('other lines have their members without control characters; the address is said once; other text is unchanged', () => {
  expect(
    shown({
      msg: 'started',
      address: 'http://127.0.0.1:4000',
      config: { PORT: 4000 },
    }),
  ).toBe('started  address http://127.0.0.1:4000');
  const listening = JSON.stringify({
    level: 30,
    time: 0,
    msg: 'Server listening at http://127.0.0.1:4000',
  });
  expect(forTerminal(`a\n${listening}\n${listening}\nb\n`)).toBe('a\nb\n');
  expect(
    shown({
      level: 40,
      msg: 'failed',
      reason: 'a\u001b[2Jb',
      err: { stack: 'Error: a\n  at b\u0007' },
    }),
  ).toBe('failed  reason a?[2Jb\nError: a\n  at b?');
  expect(forTerminal('\n  Welcome\n{no JSON}\n')).toBe(
    '\n  Welcome\n{no JSON}\n',
  );
});

test('.env in the current folder is read, the environment overrides it, and doctor names it', async () => {
  const folder = await newFolder();
  writeFileSync(join(folder, '.env'), 'PORT=70000\nLOG_SAMPLE=none\n');
  const inFolder =
    'cd "$FOLDER" && unset ANIMAL_STORE_ENV_FILE && exec "$0" "$@"';
  const command = [
    'sh',
    '-c',
    inFolder,
    process.execPath,
    resolve('dist/src/cli.js'),
    'doctor',
  ];
  const env = { PATH: `${process.env.PATH}`, FOLDER: folder, LOG_SAMPLE: '1' };
  const { code, stdout } = await runCommand(command, env).ended;
  expect(code).toBe(1);
  expect(stdout).toContain(`configuration (${join(folder, '.env')})`);
  expect(stdout).toContain(
    'PORT must be a whole number between 1 and 65535, not "70000"',
  );
  expect(stdout).not.toContain('LOG_SAMPLE');
});
