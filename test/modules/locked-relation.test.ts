// runs: postgres

import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { ownsSessions } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { connected } from '../support/session.ts';
import { storeForAll } from '../support/store.ts';
import { callersForAll } from './diaries/callers.ts';
import { diariesModule } from './diaries/diaries.module.ts';

/** A table that a relation, a check or a removal reads is locked. */

const store = storeForAll({}, undefined, { more: [diariesModule] });
const callers = callersForAll(store);
/** Of the database that the store has made for this file. */
async function urlOfStore() {
  const [[name] = []] = await sql<[string]>(
    store.database,
    'select current_database()',
  );
  const url = new URL(`${process.env.TEST_DATABASE_URL}`);
  url.pathname = `${name}`;
  return url.href;
}

const isHere = ownsSessions && !citusLayout;
(isHere ? test : test.skip)(
  'creations with a relation to a locked table leave connections for other tables (PostgreSQL only: the embedded store has one session)',
  async () => {
    const session = await connected(await urlOfStore());
    try {
      await session.query('begin; lock table diary in access exclusive mode');
      const { ada, ofAda, ask } = callers;
      const waiting = Array.from({ length: 30 }, (_, at) =>
        ask(ada, 'POST', '/remarks', { diaryId: ofAda.id, text: `${at}` }),
      );
      // Behind all of them.
      for (let time = 0; time < 5; time += 1) {
        const { status } = await rest(store, '/v1/pets?limit=1');
        expect(status).toBe(200);
      }
      const isLocked = await session.query(
        "select from pg_locks where not granted and locktype = 'relation'",
      );
      expect(isLocked.rowCount).toBeGreaterThan(0);
      await session.query('rollback');
      const answers = await Promise.all(waiting);
      expect(new Set(answers.map(({ status }) => status))).toEqual(
        new Set([201]),
      );
    } finally {
      await session.end();
    }
  },
);
