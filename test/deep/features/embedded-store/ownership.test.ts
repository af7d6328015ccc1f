import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { engineVersion } from '@animal-store/pglite-server/engine';
import { defineEntity, p } from '@mikro-orm/core';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { createOwnDatabase, optionsFor } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import {
  beforeEach,
  cases,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import {
  cli,
  type Env,
  eventually,
  freePort,
  handledBy,
  onPostgres,
  run,
  type ServerProcess,
  startAndFail,
  startServer,
} from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';
import { rest } from '../../../support/rest.ts';
import { trapEngine } from './trap.ts';

const database = databaseForEach(createOwnDatabase);
let env: Env & { DATA_DIR: string };
/** The folder of PostgreSQL in the data folder. */
let folder: string;
beforeEach(() => {
  env = {
    ...(database.env as { DATA_DIR: string }),
    BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
  };
  folder = join(env.DATA_DIR ?? '', 'postgres');
});

async function create(server: ServerProcess, name: string): Promise<void> {
  const { status } = await rest(server, '/v1/pets', {
    method: 'POST',
    json: { name, categoryId: 1 },
  });
  expect(status).toBe(201);
}

/** Waits, because the server may still be taking over the store. */
function untilReady({ origin }: ServerProcess): Promise<void> {
  return eventually(
    async () => (await send(origin, { path: '/readyz' })).status === 200,
  );
}

async function names(server: ServerProcess, limit = 20): Promise<string[]> {
  const { status, json } = await rest(server, `/v1/pets?limit=${limit}`);
  expect(status).toBe(200);
  return json.map(({ name }: { name: string }) => name);
}

const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded(
  'the embedded store (skipped on PostgreSQL, which the tests must not stop)',
  () => {
    test('is shared by a second server, which takes it over when the first ends; a third takes it over when the second is killed', async () => {
      const first = await startServer(env);
      const second = await startServer(env);
      /** The log line may be written a moment later. */
      const logLine = async ({ output }: ServerProcess, event: string) => {
        const findLine = () =>
          linesOf(output.stdout).find(
            ({ msg }) => msg === `embedded store ${event}`,
          );
        await eventually(async () => findLine() !== undefined);
        return findLine();
      };
      const opened = (role: string) => ({ role, folder: env.DATA_DIR });
      expect(await logLine(first, 'opened')).toMatchObject(opened('owner'));
      expect(await logLine(second, 'opened')).toMatchObject(opened('guest'));
      await create(first, 'Rex');
      expect(await names(second)).toEqual(['Rex']);
      await create(second, 'Bella');
      expect(await names(first)).toEqual(['Rex', 'Bella']);
      await first.stop('SIGTERM');
      await untilReady(second);
      expect(await names(second)).toEqual(['Rex', 'Bella']);
      expect(await logLine(second, 'taken over')).toMatchObject(
        opened('owner'),
      );
      await create(second, 'Coco');
      const third = await startServer(env);
      await second.stop('SIGKILL');
      await untilReady(third);
      expect(await names(third)).toEqual(['Rex', 'Bella', 'Coco']);
    });

    test('is closed when MikroORM refuses an entity, so that the process ends', async () => {
      const tag = { name: 'Lost', description: 'Lost.' };
      const properties = {
        id: p.bigint().primary(),
        parentId: () => p.manyToOne('Nothing' as never),
      };
      const model = modelOf([
        {
          tag,
          open: () => ({}),
          entities: [defineEntity({ name: 'Lost', properties })],
        },
      ]);
      const options = await optionsFor(env);
      await expect(Database.open(options, model)).rejects.toThrow('Nothing');
      expect(readdirSync(env.DATA_DIR)).not.toContain('.s.PGSQL.5432');
    });

    test('prints one first key when two servers start on it at once', async () => {
      const { DATA_DIR } = env;
      const servers = await Promise.all([
        startServer({ DATA_DIR }),
        startServer({ DATA_DIR }),
      ]);
      const ended = await Promise.all(servers.map((server) => server.stop()));
      expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        Array(2).fill({ code: 0, stderr: '' }),
      );
      expect(
        new Set(ended.flatMap(({ stdout }) => stdout.match(/ask_\w+/g) ?? []))
          .size,
      ).toBe(1);
    });

    test('of another PostgreSQL version, a damaged one, or a folder without one is not opened and not changed; each start explains what to do', async () => {
      const isRefused = async (why: string) => {
        const refused = {
          code: 1,
          stdout: '',
          stderr: `animal-store: The embedded store could not be opened: ${why}\n`,
        };
        expect(await startAndFail(env)).toMatchObject(refused);
        expect(await cli(['keys', 'list'], env)).toMatchObject(refused);
      };
      mkdirSync(folder);
      writeFileSync(join(folder, 'diary.txt'), 'Today I fed the cat.');
      await isRefused(
        `${folder} is not empty, and holds no database (PG_VERSION is missing).`,
      );
      expect(readdirSync(folder)).toEqual(['diary.txt']);
      rmSync(folder, { recursive: true });

      const first = await startServer(env);
      await create(first, 'Rex');
      await first.stop('SIGKILL');
      expect(readdirSync(env.DATA_DIR)).toEqual(
        expect.arrayContaining(['.s.PGSQL.5432', 'lock', 'migration.lock']),
      );
      const version = join(folder, 'PG_VERSION');
      const ownVersion = readFileSync(version, 'utf8');
      expect(ownVersion.trim()).toBe(engineVersion);
      writeFileSync(version, '17\n');
      await isRefused(
        `${folder} was made by PostgreSQL 17, and this release has PostgreSQL ${engineVersion}. Nothing was changed. ` +
          'Back it up with the release that made it, and restore the backup into a new folder.',
      );
      writeFileSync(version, ownVersion);
      // Neither a journal that SQLite left nor a regular file in place of the
      // socket prevents the opening.
      writeFileSync(join(env.DATA_DIR, 'lock-journal'), '');
      rmSync(join(env.DATA_DIR, '.s.PGSQL.5432'));
      writeFileSync(join(env.DATA_DIR, '.s.PGSQL.5432'), '');
      const again = await startServer(env);
      expect(await names(again)).toEqual(['Rex']);
      await again.stop();

      writeFileSync(join(folder, 'global', 'pg_control'), Buffer.alloc(8192));
      await isRefused(
        `PostgreSQL cannot start on ${folder} (PGlite failed to initialize properly): a file of it may be damaged or ` +
          'missing. Restore a backup into a new folder.',
      );
    });

    /**
     * The state in which the process is killed: a lock alone, a part of the
     * folder, the whole folder, a server. Some consecutive states are drawn at
     * random; GENERATED_CASES sets their share.
     */
    const states: Array<[string, () => boolean]> = [
      ['it held the lock', () => existsSync(join(env.DATA_DIR, 'lock'))],
      ['the folder existed', () => existsSync(folder)],
      [
        'the folder had its version',
        () => existsSync(join(folder, 'PG_VERSION')),
      ],
      [
        'the folder held tables',
        () =>
          existsSync(join(folder, 'base')) &&
          readdirSync(join(folder, 'base')).length > 0,
      ],
      ['it was open', () => existsSync(join(folder, 'postmaster.pid'))],
      ['it listened', () => existsSync(join(env.DATA_DIR, '.s.PGSQL.5432'))],
      ['it migrated', () => existsSync(join(env.DATA_DIR, 'migration.lock'))],
    ];

    const count = cases(states.length);
    const first = Math.floor(Math.random() * (states.length - count + 1));
    test.each(states.slice(first, first + count))(
      'starts again after the first start was killed when %s',
      async (_state, isReached) => {
        const killed = run('main', [], { ...env, PORT: `${await freePort()}` });
        while (!isReached() && killed.child.exitCode === null) await pause(1);
        killed.child.kill('SIGKILL');
        expect((await killed.ended).signal).toBe('SIGKILL');
        const server = await startServer(env);
        await create(server, 'Rex');
        expect(await names(server)).toEqual(['Rex']);
      },
    );

    test('takes less than 640 MB at a first start and at a later one, as docs/operate.md says', async () => {
      for (const start of ['first', 'later']) {
        const server = await startServer({ ...env, LOG_LEVEL: 'silent' });
        await Promise.all(
          Array.from({ length: 100 }, () => create(server, 'x'.repeat(1000))),
        );
        for (let round = 0; round < 5; round += 1)
          expect(await names(server, 100)).toHaveLength(100);
        // VmHWM is the peak of its resident memory (proc(5)).
        const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
        const megabytes =
          Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
        expect([start, megabytes < 640]).toEqual([start, true]);
        expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
      }
    });

    test('ends the service when its engine traps, and loses no data', async () => {
      const server = await startServer(env);
      await create(server, 'Rex');
      await trapEngine(env.DATA_DIR);
      const { code, stderr } = await server.ended;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'animal-store: The embedded store has stopped working.\n',
      });
      expect(await names(await startServer(env))).toEqual(['Rex']);
    });
  },
);

test('the signal of a fault ends the process', async () => {
  const server = await startServer(env);
  expect(
    handledBy(server, ['SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTRAP', 'SIGABRT']),
  ).toEqual([]);
  // V8 handles this signal to detect traps.
  expect(await server.stop('SIGSEGV')).toMatchObject({
    code: null,
    signal: 'SIGSEGV',
  });
});
