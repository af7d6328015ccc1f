import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import { onPostgres, startServer } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { startWorkers } from '../workers/start.ts';
import { trapEngine } from './trap.ts';

const database = databaseForEach(createOwnDatabase);

(onPostgres ? describe.skip : describe)(
  'the embedded store of several workers (skipped on PostgreSQL)',
  () => {
    test('prints one first key when a server and workers start on it at once', async () => {
      const { env } = database;
      const servers = await Promise.all([
        startServer(env),
        startServer({ ...env, WORKERS: '2' }),
      ]);
      const ended = await Promise.all(servers.map((server) => server.stop()));
      expect(ended).toMatchObject(Array(2).fill({ code: 0, stderr: '' }));
      const keys = ended.flatMap(
        ({ stdout }) => stdout.match(/ask_\w+/g) ?? [],
      );
      expect(new Set(keys).size).toBe(1);
    });

    test('ends the service when its engine traps in the parent, and loses no data', async () => {
      const server = await startWorkers(database.env, 2);
      const json = { name: 'Rex', categoryId: 1 };
      await rest(server, '/v1/pets', { method: 'POST', json });
      await trapEngine((database.env as { DATA_DIR: string }).DATA_DIR);
      expect(await server.ended).toMatchObject({
        code: 1,
        stderr: 'animal-store: The embedded store has stopped working.\n',
      });
      const again = await startServer({
        ...database.env,
        BOOTSTRAP_API_KEY: server.key,
      });
      expect((await rest(again, '/v1/pets')).json).toMatchObject([
        { name: 'Rex' },
      ]);
    });
  },
);
