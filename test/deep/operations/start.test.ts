import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { startWorkers } from '../../support/workers.ts';

const database = databaseForEach(createOwnDatabase);

/** `test/operations/program.test.ts` has what the first start prints. */
(onPostgres ? describe.skip : describe)(
  'a first start (skipped on PostgreSQL, where keys are issued by the operator)',
  () => {
    test('is followed by others that print no key and still have the data', async () => {
      // Workers print it once, too.
      const first = await startWorkers(database.env, 2);
      await eventually(async () => first.output.stdout.includes('Explore:'));
      const keys = new Set(first.output.stdout.match(/ask_\w+/g));
      expect(keys.size).toBe(1);
      const [key = ''] = keys;
      await first.stop();
      const second = await startServer(database.env);
      const created = await rest({ ...second, key }, '/v1/pets', {
        method: 'POST',
        json: { name: 'Rex', categoryId: 5 },
      });
      await second.stop();
      const third = await startServer(database.env);
      expect((await rest({ ...third, key }, '/v1/pets')).json).toEqual([created.json]);
      await third.stop();
      expect(second.output.stdout).not.toContain('API key');
      expect(third.output.stdout).not.toContain('API key');
    });
  },
);

test('a known key is valid as long as the configuration names it, and then no key is printed', async () => {
  const key = 'a-key-that-is-set-in-the-environment';
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
  expect((await rest(server, '/v1/pets')).status).toBe(200);
  expect((await server.stop()).stdout).not.toContain('API key');
  const without = await startServer(database.env);
  expect((await rest({ ...without, key }, '/v1/pets')).status).toBe(401);
});
