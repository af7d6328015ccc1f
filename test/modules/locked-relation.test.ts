// runs: postgres

import { Call } from '#engine/call.js';
import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually, ownsSessions } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { connected } from '../support/session.ts';
import { storeForAll } from '../support/store.ts';
import { callersForAll } from './diaries/callers.ts';
import { diariesModule } from './diaries/diaries.module.ts';
import { DiaryEntity } from './diaries/diary.ts';

/** A table is locked. */

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

type Send = (at: number) => Promise<unknown>;

const byAda = async (method: string, path: string, json?: object) => {
  const { status } = await callers.ask(callers.ada, method, path, json);
  expect([200, 201, 409]).toContain(status);
};
const pathOfDiary = () => `/diaries/${callers.ofAda.id}`;

/** What waits for the table of diaries. */
const requests: Record<string, Send> = {
  lists: () => byAda('GET', '/diaries'),
  finds: () => byAda('GET', pathOfDiary()),
  totals: (at) => byAda('GET', `/diaries?count=exact&mood=${at}`),
  creations: (at) => {
    const title = `${performance.now()} ${at}`;
    return byAda('POST', '/diaries', { title, mood: 'x' });
  },
  changes: () => byAda('PATCH', pathOfDiary(), { version: 999, mood: 'y' }),
  removals: () => byAda('DELETE', `${pathOfDiary()}?version=9`),
  relations: (at) =>
    byAda('POST', '/remarks', { diaryId: callers.ofAda.id, text: `${at}` }),
  'live lists': async () => {
    const path = '/v1/diaries';
    const request = { method: 'GET', path, key: callers.ada };
    const stream = await openStream(store, request);
    // Of one key only some.
    await eventually(async () => /id: |TOO_MANY_REQ/.test(stream.text));
    stream.close();
  },
  'own readings': () =>
    store.database.reading(new Call(60_000), (em) =>
      em.find(DiaryEntity, { id: 1 } as object),
    ),
  transactions: () =>
    store.database.transaction(
      new Call(60_000),
      { creates: [DiaryEntity] },
      (em) => em.find(DiaryEntity, { id: 1 } as object),
    ),
};
const all: Send = async (at) => {
  const kinds = Object.values(requests);
  return (kinds[at % kinds.length] as Send)(at);
};

const isHere = ownsSessions && !citusLayout;
describe.each([...Object.entries(requests), ['requests of all kinds', all]])(
  '60 %s',
  (_name, request) => {
    (isHere ? test : test.skip)(
      'of a locked table leave connections for other tables (PostgreSQL only: the embedded store has one session)',
      () => whileLocked(request as Send),
    );
  },
);

async function whileLocked(request: Send) {
  const session = await connected(await urlOfStore());
  try {
    await session.query('begin; lock table diary in access exclusive mode');
    const waiting = Array.from({ length: 60 }, (_, at) => request(at));
    const done = Promise.all(waiting);
    done.catch(() => undefined);
    const locked =
      "select from pg_locks where not granted and locktype = 'relation'";
    await eventually(async () => (await session.query(locked)).rowCount !== 0);
    // Behind all of them.
    for (let time = 0; time < 5; time += 1) {
      const { status } = await rest(store, '/v1/pets?limit=1');
      expect(status).toBe(200);
    }
    const ready = await send(store.origin, { path: '/readyz' });
    expect(ready.text).toBe('{"status":"ok"}');
    const { rowCount } = await session.query(locked);
    expect(rowCount).toBeGreaterThan(0);
    expect(rowCount).toBeLessThan(10);
    await session.query('rollback');
    await done;
  } finally {
    await session.end();
  }
}
