import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from '../../../support/folder.ts';
import { expect, test } from '../../../support/jest.ts';
import {
  killAll,
  onPostgres,
  startAndFail,
  startServer,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';

const canMount =
  process.platform === 'linux' && process.getuid?.() === 0 && !onPostgres;

/**
 * test/drills/faults/disk.ts verifies the creations that are acknowledged while
 * the disk fills.
 */
(canMount ? test : test.skip)(
  'every start on a full disk reports it, and the store starts once there is room (skipped on PostgreSQL, and without root)',
  async () => {
    const DATA_DIR = await newFolder();
    const mount = (options: string) =>
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', DATA_DIR]);
    const env = {
      DATA_DIR,
      BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
      LOG_LEVEL: 'silent',
    };
    const message = `The disk of ${DATA_DIR} is full. Make room and start again: what was acknowledged is there.`;
    /**
     * The message has a prefix for some of the files that may be the first to
     * find no room.
     */
    const startReportsFullDisk = async () => {
      const { stderr, ...ended } = await startAndFail(env);
      expect(ended).toMatchObject({ code: 1, stdout: '' });
      expect(
        stderr.replace('The embedded store could not be opened: ', ''),
      ).toBe(`animal-store: ${message}\n`);
    };
    mount('rw,size=24m,mode=700');
    try {
      await startReportsFullDisk();
      mount('remount,size=300m');
      const server = await startServer(env);
      const json = { name: 'Rex', categoryId: 1 };
      const { json: rex } = await rest(server, '/v1/pets', {
        method: 'POST',
        json,
      });
      // The server has no time to shut down.
      await server.stop('SIGKILL');
      const filler = join(DATA_DIR, 'filler');
      // Fills the disk.
      expect(() => {
        for (;;) appendFileSync(filler, Buffer.alloc(65_536));
      }).toThrow('ENOSPC');
      await startReportsFullDisk();
      rmSync(filler);
      expect((await rest(await startServer(env), '/v1/pets')).json).toEqual([
        rex,
      ]);
    } finally {
      await killAll();
      execFileSync('umount', [DATA_DIR]);
      rmSync(DATA_DIR, { recursive: true });
    }
  },
);
