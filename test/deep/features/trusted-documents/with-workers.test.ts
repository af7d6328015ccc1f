import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
import { send } from '../../../support/http.ts';
import { expect, test } from '../../../support/jest.ts';
import { eventually, startAndFail } from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';
import { startWorkers } from '../workers/start.ts';

const database = databaseForEach();

test('while a worker cannot restart the others serve and /readyz has the number of workers up; after six failures the service ends with 1', async () => {
  const manifest = join(await newFolder(), 'manifest.json');
  writeFileSync(manifest, '{}');
  const server = await startWorkers(
    { ...database.env, TRUSTED_DOCUMENTS: manifest },
    2,
  );
  rmSync(manifest);
  process.kill(server.pids()[0] as number, 'SIGKILL');
  const fewer = '{"status":"ok","workers":"1 of 2"}';
  await eventually(
    async () => (await send(server.origin, { path: '/readyz' })).text === fewer,
  );
  const { code, stderr, stdout } = await server.ended;
  expect(code).toBe(1);
  const reasons = stderr.trim().split('\n');
  expect(reasons.pop()).toMatch(
    /^animal-store: Worker \d ended before it could serve, 6 times in a row, .*exit code 1\.$/,
  );
  expect(reasons).toHaveLength(6);
  const pauses = linesOf(stdout, 'worker died').map(
    ({ restartInMs }) => restartInMs,
  );
  expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200]);
  expect(
    linesOf(stdout, 'worker ended').filter(({ exitCode }) => exitCode === 0),
  ).toHaveLength(1);
});

test('with workers an unreadable file is named once', async () => {
  const env = {
    ...database.env,
    WORKERS: '3',
    TRUSTED_DOCUMENTS: '/nowhere/manifest.json',
  };
  const stderr = expect.stringMatching(/^animal-store: .*manifest\.json.*\n$/);
  expect(await startAndFail(env)).toMatchObject({ code: 1, stderr });
});
