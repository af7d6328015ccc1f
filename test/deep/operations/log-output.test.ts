import { closeSync, openSync } from 'node:fs';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import { eventually } from '../../support/process.ts';
import { drained, request, writesWholeLines } from '../support/log-output.ts';
import { Pipe } from '../support/pipe.ts';

/** A log that cannot be written affects neither requests nor the shutdown. */
const database = databaseForEach();

test('a server whose standard output is a pipe writes every line whole; when its reader stalls, whole lines that do not fit are dropped and counted', () =>
  writesWholeLines((stdout) => startMeasured(database.env, { stdout }), 1));

test.each([
  'a full disk',
  'a pipe whose reader has gone',
  'a pipe whose reader stalls',
])(
  'a server whose standard output is %s continues to serve, and ends with 0 at SIGTERM',
  async (output) => {
    const pipe = new Pipe();
    const stdout =
      output === 'a full disk' ? openSync('/dev/full', 'w') : pipe.writer;
    const server = await startMeasured(database.env, { stdout });
    closeSync(stdout);
    if (output.endsWith('gone')) {
      await eventually(async () => pipe.read().includes('answered'));
      pipe.leave();
    }
    await request(server, 600, 1);
    expect(await server.stop()).toMatchObject(drained);
  },
);
