import pg from 'pg';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { handledBy, onPostgres, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const key = 'a-key-for-these-tests-and-no-others';

// With workers the engine is the parent's.
(onPostgres ? describe.skip : describe)('a trap in the embedded engine (embedded store only)', () => {
  const database = databaseForEach(createOwnDatabase);

  test.each([1, 2])('ends the service, and loses nothing, with %i workers', async (workers) => {
    const { DATA_DIR } = database.env as { DATA_DIR: string };
    const env = { DATA_DIR, BOOTSTRAP_API_KEY: key };
    const server = await startServer({ ...env, WORKERS: `${workers}` });
    const rex = await rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } });
    expect(rex.status).toBe(201);
    const guest = new pg.Client({ host: DATA_DIR, user: 'postgres', database: 'postgres' });
    guest.on('error', () => undefined);
    await guest.connect();
    // A number is no address: WebAssembly's word is "memory access out of bounds", of which V8 makes an exception by way
    // of SIGSEGV.
    await guest.query("create function trap(int) returns int language internal strict as 'textlen'");
    await expect(guest.query('select trap(2147483000)')).rejects.toThrow('Connection terminated unexpectedly');
    const { code, stderr } = await server.ended;
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'animal-store: The embedded store has stopped working.\n' });
    const again = await startServer(env);
    expect((await rest(again, '/v1/pets')).json).toEqual([rex.json]);
  });
});

describe('a fault of the process', () => {
  const database = databaseForEach();

  test('ends it', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    expect(handledBy(server, ['SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTRAP', 'SIGABRT'])).toEqual([]);
    // V8 has a handler for this one, by which it notices traps.
    expect(await server.stop('SIGSEGV')).toMatchObject({ code: null, signal: 'SIGSEGV' });
  });
});
