import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { hostname } from 'node:os';
import type pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, killAll, onPostgres, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { openSession } from '../../support/session.ts';
import { type Store, startStore } from '../../support/store.ts';

type Client = Pick<Store, 'origin' | 'key'>;

/** A request that has been sent as a whole, by a client that can go away. */
function begin({ origin, key }: Client, path: string, body: unknown): ClientRequest {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const outgoing = request(`${origin}${path}`, { method: 'POST', headers, agent: false });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify(body));
  return outgoing;
}

const mutation = 'mutation { createPet(input: { name: "ghost", categoryId: 5 }) { id } }';
const creations = [
  (client: Client) => begin(client, '/v1/pets', { name: 'ghost', categoryId: 5 }),
  (client: Client) => begin(client, '/graphql', { query: mutation }),
];

const onServer = onPostgres ? describe : describe.skip;

onServer('clients that do not wait (PostgreSQL only: no lock can be held on the embedded store)', () => {
  let database: TestDatabase;
  let session: pg.Client;
  beforeEach(async () => {
    database = await createTestDatabase();
    session = await openSession(database);
  });
  afterEach(() => session.end());

  // Nothing ends by itself.
  const patience = { DATABASE_STATEMENT_TIMEOUT_MS: '600000' };

  async function lock(): Promise<void> {
    await session.query('begin; lock table pet in access exclusive mode');
  }

  /** Until a creation stands before the lock. */
  async function someoneWaits(): Promise<void> {
    const waiting = `select 1 from pg_locks join pg_database on pg_database.oid = database
      where datname = current_database() and not granted`;
    await eventually(async () => (await session.query(waiting)).rows.length > 0);
  }

  describe('in this process', () => {
    let store: Store;
    beforeEach(async () => {
      store = await startStore(patience, { database });
    });
    afterEach(() => store.close());

    const connections = () => new Promise<number>((done) => store.app.server.getConnections((_, count) => done(count)));
    const create = (name: string) => rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });

    test('creations whose clients have gone before it was their turn are not written', async () => {
      await lock();
      const first = create('Rex');
      await someoneWaits();
      const gone = creations.flatMap((begun) => Array.from({ length: 10 }, () => begun(store)));
      await Promise.all(gone.map((outgoing) => once(outgoing, 'finish')));
      await eventually(async () => (await connections()) > gone.length);
      const patient = create('Bella');
      // What was sent before it has been read when it is answered.
      expect((await send(store.origin, { path: '/livez' })).status).toBe(200);
      for (const outgoing of gone) outgoing.destroy();
      await eventually(async () => (await connections()) <= 3);

      await session.query('rollback');
      expect([(await first).status, (await patient).status]).toEqual([201, 201]);
      const { json } = await rest(store, '/v1/pets');
      expect(json.map(({ name }: { name: string }) => name)).toEqual(['Rex', 'Bella']);
    });
  });

  describe('in a process of its own', () => {
    afterEach(async () => {
      await killAll();
      await database.drop();
    });

    test('the log has a line for every request whose client has gone', async () => {
      const server = await startServer({
        ...database.env,
        ...patience,
        BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
      });
      await lock();
      const gone = creations.map((begun) => begun(server));
      await someoneWaits();
      for (const outgoing of gone) outgoing.destroy();
      const msg = 'aborted by the client';
      await eventually(async () => server.output.stdout.split(msg).length > gone.length);
      await session.query('rollback');
      const ended = await server.stop();
      expect(ended).toMatchObject({ code: 0, stderr: '' });

      const lines = ended.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      // One of them is in a statement, the other may wait for that.
      const aborted = lines.filter((line) => line.msg === msg).map(({ queueMs, batch, ...line }) => line);
      const anything = {
        time: expect.any(Number),
        pid: server.child.pid,
        host: hostname(),
        reqId: expect.any(String),
        address: '127.0.0.1',
        ms: expect.any(Number),
      };
      const operations = {
        '/v1/pets': { face: 'rest', operation: 'createPet' },
        '/graphql': { face: 'graphql', fields: ['createPet'] },
      };
      expect(aborted).toHaveLength(2);
      for (const [path, operation] of Object.entries(operations)) {
        const req = { method: 'POST', path };
        expect(aborted).toContainEqual({ ...anything, level: 30, req, ...operation, key: 0, msg });
      }
    });
  });
});
