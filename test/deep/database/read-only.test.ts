import type { Database } from '../../../src/storage/database/database.ts';
import { sql } from '../../support/database-access.ts';
import { faces } from '../../support/faces.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { ownsSessions } from '../../support/process.ts';
import { type Store, startStore } from '../../support/store.ts';

const onServer = ownsSessions ? describe.each(faces) : describe.skip.each(faces);

onServer(
  'a PostgreSQL that takes no more writes, by $name (PostgreSQL only, and not through a pooler: whose sessions they are)',
  (face) => {
    let store: Store;
    beforeEach(async () => {
      store = await startStore({ DATABASE_POOL_MAX: '4' });
    });
    afterEach(() => store.close());

    /** As when the server behind an address has become a standby: all sessions that are open now go there. */
    async function makeSessionsReadOnly(): Promise<void> {
      const text = `select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.2)`;
      // The connection of the checks is as old as the pool's.
      const { checks } = store.database as unknown as { checks: Pick<Database, 'rows'> };
      await Promise.all([
        ...Array.from({ length: 4 }, () => sql(store.database, text)),
        checks.rows({ name: '', text }, []),
      ]);
    }

    test('the first creation is refused, the next one goes to a server that takes writes', async () => {
      await makeSessionsReadOnly();
      expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toMatchObject({ status: 503 });
      for (let time = 1; time <= 8; time += 1) {
        expect(await face.create(store, { name: `Rex ${time}`, categoryId: 5 })).toHaveProperty('data');
      }
      const text = `select count(*) from pg_stat_activity where datname = current_database() and state = 'idle'`;
      expect(Number((await sql<[string]>(store.database, text))[0]?.[0])).toBeLessThanOrEqual(4);
    });

    test('readiness notices, too: not ready once, then ready again', async () => {
      await makeSessionsReadOnly();
      expect((await send(store.origin, { path: '/readyz' })).status).toBe(503);
      expect((await send(store.origin, { path: '/readyz' })).status).toBe(200);
      expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toHaveProperty('data');
    });
  },
);
