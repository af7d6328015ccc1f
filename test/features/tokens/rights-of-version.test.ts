// runs: postgres

import { Records } from '#engine/records/records.js';
import { wardsOn } from '../../modules/wards/wards.module.ts';
import { sql } from '../../support/database-access.ts';
import { beforeAll, expect, test } from '../../support/jest.ts';
import { eventually, ownsSessions } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { connected } from '../../support/session.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from './provider.ts';

/** A change waits for its row, which gets the version that it names. */

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    JWT_TENANT: 'org',
    JWT_SCOPES: 'staff=wards:write,guest=guests:write',
  }),
);
const store = storeForAll(env, undefined, { more: wardsOn(Records) });
const isHere = ownsSessions && !citusLayout;

(isHere ? test : test.skip)(
  'a change of the version that its row gets while it waits has no other rights (PostgreSQL only)',
  async () => {
    const keyOf = (sub: string, scope: string) =>
      provider.token({ sub, org: 'a', scope });
    const input = { name: 'Ann', login: 'ann' };
    const { json: card } = await rest(store, '/v1/cards', {
      ...{ method: 'POST', json: input, key: keyOf('sam', 'staff') },
    });
    const [[database] = []] = await sql<[string]>(
      store.database,
      'select current_database()',
    );
    const url = new URL(`${process.env.TEST_DATABASE_URL}`);
    url.pathname = `${database}`;
    const session = await connected(url.href);
    const observer = await connected(url.href);
    try {
      await session.query('begin');
      const next = `update card set version = 2 where id = ${card.id}`;
      await session.query(next);
      let isAnswered = false;
      const answer = rest(store, `/v1/cards/${card.id}`, {
        method: 'PATCH',
        json: { version: 2, name: 'x', note: 'y' },
        key: keyOf('ann', 'guest'),
      }).finally(() => {
        isAnswered = true;
      });
      const waiting = `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await eventually(
        async () =>
          isAnswered || (await observer.query(waiting)).rowCount === 1,
      );
      await session.query('commit');
      expect((await answer).json).toMatchObject({ code: 'CONFLICT' });
    } finally {
      await session.end();
      await observer.end();
    }
  },
);
