import type pg from 'pg';
import { createTestDatabase } from '../../support/database.ts';
import { type HttpResponse, send } from '../../support/http.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres } from '../../support/process.ts';
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
      const refusals = await Promise.all(Array.from({ length: 500 }, () => all.map(({ run }) => run())).flat());
      // If they waited for each other, the last would be refused after half an hour: the limit of a test is two minutes.
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
