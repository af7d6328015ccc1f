import { get } from 'node:http';
import type pg from 'pg';
import { creators } from '../../support/creations.ts';
import { createTestDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { type HttpResponse, send } from '../../support/http.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, startServer } from '../../support/process.ts';
import { operations, type Refusal } from '../../support/refusal.ts';
import { openSession } from '../../support/session.ts';
import { type Store, startStore } from '../../support/store.ts';

const onServer = onPostgres ? describe : describe.skip;

onServer(
  'while another session holds the table (PostgreSQL only: the embedded store has one session at a time)',
  () => {
    const statementTimeout = 5000;
    let store: Store;
    let session: pg.Client;
    beforeAll(async () => {
      const database = await createTestDatabase();
      store = await startStore({ DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}` }, { database });
      session = await openSession(database);
    });
    afterAll(async () => {
      await session.end();
      await store.close();
    });
    beforeEach(async () => {
      await session.query('begin; lock table pet in access exclusive mode');
    });
    afterEach(async () => {
      await session.query('rollback');
      await eventually(async () => (await ask('/readyz')).status === 200);
    });

    const ask = (path: string): Promise<HttpResponse> => send(store.origin, { path });
    const all = Object.entries(operations).flatMap(([face, by]) =>
      Object.entries(by).map(([name, operation]) => ({ name: `${name} by ${face}`, run: () => operation(store) })),
    );

    test('every request is refused while the table stays locked, however many there are', async () => {
      const refusals = await Promise.all(Array.from({ length: 200 }, () => all.map(({ run }) => run())).flat());
      // If they waited for each other, the last would be refused after ten minutes: the limit of a test is two.
      const told = new Set(refusals.map(({ code, status }) => `${status} ${code}`));
      expect([...told]).toEqual(['503 SERVICE_UNAVAILABLE']);
    });

    test('when nothing makes progress new requests are refused at once, on both faces, and /readyz says so', async () => {
      const busy: Refusal = {
        code: 'SERVICE_UNAVAILABLE',
        status: 503,
        message: 'Too many requests wait for the database; try again shortly.',
        retryAfter: 1,
      };
      const refused = new Map<string, Refusal>();
      const answers: Promise<unknown>[] = [];
      let readiness: HttpResponse | undefined;
      await eventually(async () => {
        for (const { name, run } of all) {
          const answer = run().then((refusal) => refusal.message === busy.message && refused.set(name, refusal));
          // Until all of them are awaited nobody looks at one that fails.
          answer.catch(() => undefined);
          answers.push(answer);
        }
        expect((await ask('/livez')).status).toBe(200);
        readiness = await ask('/readyz');
        return readiness.status === 503 && refused.size === all.length;
      });
      await Promise.all(answers);
      expect([...refused.values()]).toEqual(all.map(() => busy));
      const { status, headers, text } = readiness as HttpResponse;
      expect({ status, body: JSON.parse(text), retryAfter: headers['retry-after'] }).toEqual({
        status: 503,
        body: {
          code: 'SERVICE_UNAVAILABLE',
          status: 503,
          message: 'Requests queued for the database are not making progress.',
        },
        retryAfter: '1',
      });
    });
  },
);

onServer('a drain while another session holds the table (PostgreSQL only)', () => {
  const database = databaseForEach();

  test('answers the requests in flight on both faces, and closes their connections', async () => {
    const key = 'a-key-for-these-tests-and-no-others';
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, DRAIN_TIMEOUT_MS: '600000' });
    const [holder, observer] = [await openSession(database), await openSession(database)];
    await holder.query('begin; lock table pet in access exclusive mode');
    const list = (path: string) =>
      new Promise((done, fail) => {
        const headers = { authorization: `Bearer ${key}`, connection: 'keep-alive' };
        get(`${server.origin}${path}`, { headers }, (answer) => {
          answer.resume().on('end', () => done([answer.statusCode, answer.headers.connection]));
        }).on('error', fail);
      });
    const rex = { name: 'Rex', categoryId: 5 };
    const calls = [
      ...creators.map((creator) => creator.create(server, rex).then(({ outcome }) => outcome.name)),
      list('/v1/pets'),
      list('/graphql?query={pets{id}}'),
    ];
    // Within its transaction the holder would see the same activity for ever.
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await eventually(async () => ((await observer.query(waiting)).rowCount ?? 0) >= 2);
    const ended = server.stop();
    await eventually(async () => server.output.stdout.includes('"draining"'));
    await holder.query('commit');
    await holder.end();
    await observer.end();
    expect(await Promise.all(calls)).toEqual(['Rex', 'Rex', [200, 'close'], [200, 'close']]);
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });
});
