// runs: postgres

import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { eventually, ownsSessions } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { connected } from '../support/session.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';
import { checkupsModule } from './checkups/checkups.module.ts';
import { diariesModule } from './diaries/diaries.module.ts';

/** Two requests have read one version, and wait for its row. */

const more = [checkupsModule, diariesModule];
const store = storeForAll({}, undefined, { more });
const other = nodeForAll(store, {});
const isHere = ownsSessions && !citusLayout;

async function urlOfStore() {
  const [[name] = []] = await sql<[string]>(
    store.database,
    'select current_database()',
  );
  const url = new URL(`${process.env.TEST_DATABASE_URL}`);
  url.pathname = `${name}`;
  return url.href;
}

const post = (path: string, json: object) =>
  rest(store, path, { method: 'POST', json });
type Session = Awaited<ReturnType<typeof connected>>;
/** Waits until requests wait for locks. */
async function untilWaiting(observer: Session, count: number) {
  // In a transaction the activity would stay as it was at first.
  const text = `select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  await eventually(async () => (await observer.query(text)).rowCount === count);
}

type Send = [method: string, query: string, json?: object];
const change: Send = ['PATCH', '', { version: 1, reason: 'changed' }];
const removal: Send = ['DELETE', '?version=1'];

(isHere ? test : test.skip).each([
  ['changes', change, change, [200, 409]],
  ['a change and a removal', change, removal, [200, 409]],
  ['a removal and a change', removal, change, [204, 404]],
  ['removals', removal, removal, [204, 404]],
] as Array<[string, Send, Send, number[]]>)(
  'of %s of one version the first wins (PostgreSQL only: the embedded store has one session)',
  async (_what, first, second, statuses) => {
    const pet = await post('/v1/pets', { name: 'Rex', categoryId: 1 });
    const input = { petId: pet.json.id, reason: 'x-ray' };
    const { json } = await post('/v1/checkups', input);
    const url = await urlOfStore();
    const session = await connected(url);
    const observer = await connected(url);
    try {
      const { id } = json;
      await session.query('begin');
      await session.query(`select from checkup where id = ${id} for update`);
      const send = (node: typeof other, [method, query, body]: Send) =>
        rest(node, `/v1/checkups/${id}${query}`, { method, json: body });
      const answers = [send(store, first)];
      await untilWaiting(observer, 1);
      answers.push(send(other, second));
      await untilWaiting(observer, 2);
      await session.query('rollback');
      const sent = await Promise.all(answers);
      expect(sent.map(({ status }) => status)).toEqual(statuses);
    } finally {
      await session.end();
      await observer.end();
    }
  },
);

(isHere ? test : test.skip).each<Send>([
  ['PATCH', '', { version: 1, mood: 'glad' }],
  removal,
])(
  'a dry run (%s) that waits for a row delays no creation',
  async (method, query, json) => {
    const add = () => {
      const title = `${performance.now()}`;
      return post('/v1/diaries', { title, mood: 'calm' });
    };
    const { id } = (await add()).json;
    const url = await urlOfStore();
    const session = await connected(url);
    const observer = await connected(url);
    try {
      await session.query('begin');
      await session.query(`select from diary where id = ${id} for update`);
      const headers = { prefer: 'tx=rollback' };
      const path = `/v1/diaries/${id}${query}`;
      const trial = rest(store, path, { method, json, headers });
      await untilWaiting(observer, 1);
      expect((await add()).status).toBe(201);
      await session.query('rollback');
      expect((await trial).headers['preference-applied']).toBe('tx=rollback');
    } finally {
      await session.end();
      await observer.end();
    }
  },
);
