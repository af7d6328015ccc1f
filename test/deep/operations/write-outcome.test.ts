// runs: embedded, postgres

import type pg from 'pg';
import { creators } from '../../support/apis.ts';
import { createTestDatabase } from '../../support/database.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import {
  eventually,
  bootstrapKey as key,
  onPostgres,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { TcpProxy } from '../../support/servers/tcp-proxy.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { type Store, startStore } from '../../support/store.ts';
import { operations } from './refusal.ts';

const refused = { code: 'SERVICE_UNAVAILABLE', status: 503 };
const uncertain =
  'The database did not say whether this was stored: it may have been.';
const unknown = {
  ...refused,
  message: `${uncertain} Look for it before you send it again.`,
  retryAfter: undefined,
};
const notBegun = {
  ...refused,
  message: 'The database cannot be reached; try again shortly.',
  retryAfter: 1,
};

(onPostgres ? describe : describe.skip).each(Object.entries(operations))(
  'a creation by %s that fails (PostgreSQL only: the embedded store has no proxy in front)',
  (api, { create }) => {
    let proxy: TcpProxy;
    let store: Store;
    let session: pg.Client;
    beforeAll(async () => {
      const database = await createTestDatabase();
      proxy = new TcpProxy(new URL(urlOf(database)));
      await proxy.open();
      // The bootstrap key needs no look-up, so no other statement precedes the
      // creation.
      const env = {
        DATABASE_URL: proxy.url,
        DATABASE_STATEMENT_TIMEOUT_MS: '1000',
        BOOTSTRAP_API_KEY: key,
      };
      store = { ...(await startStore(env, { database })), key };
      session = await openSession(database);
    });
    afterAll(async () => {
      await session.end();
      await store.close();
      proxy.cut();
    });
    beforeEach(() => store.empty());
    afterEach(mend);

    async function mend(): Promise<void> {
      proxy.cut();
      proxy.isSilent = false;
      proxy.cutsAt = undefined;
      await proxy.open();
      await eventually(
        async () => (await rest(store, '/v1/pets')).status === 200,
      );
    }

    /** The stored names, read without the proxy. */
    const stored = async () =>
      (await session.query('select name from pet')).rows.map(
        ({ name }) => name,
      );

    test.each([
      ['the connection breaks after the commit', 'INSERT 0 1', 'SELECT 1'],
      ['PostgreSQL stops responding after it was sent', undefined, undefined],
    ])(
      'gets 503 without Retry-After when %s; with an Idempotency-Key it gets Retry-After, and a repetition stores it once',
      async (_fault, cutsAt, cutsOnceAt) => {
        const fail = async (at: string | undefined) => {
          // Opens a connection, so that the creation is sent on it.
          expect((await rest(store, '/v1/pets')).status).toBe(200);
          proxy.cutsAt = at;
          proxy.isSilent = at === undefined;
        };
        await fail(cutsAt);
        expect(await create(store, 'Rex')).toEqual(unknown);
        if (cutsAt) expect(await stored()).toEqual(['Rex']);
        await mend();
        await store.empty();

        const { create: createOnce } = creators.find(
          ({ name }) => name === api,
        ) as (typeof creators)[number];
        const send = () =>
          createOnce(
            store,
            { name: 'Rex', categoryId: 5 },
            { once: 'a-name-for-it' },
          );
        await session.query('delete from idempotency_key');
        await fail(cutsOnceAt);
        const message = `${uncertain} Send it again with the same Idempotency-Key.`;
        expect(await send()).toMatchObject({
          outcome: { ...refused, message },
          retryAfter: 1,
        });
        const before = await stored();
        await mend();
        const { outcome, replayed } = await send();
        expect(outcome).toMatchObject({ name: 'Rex' });
        expect(replayed).toBe(before.length === 1 ? 'true' : undefined);
        expect(await stored()).toEqual(['Rex']);
      },
    );

    test('before it was sent gets Retry-After', async () => {
      proxy.cut();
      await eventually(
        async () => (await rest(store, '/v1/pets')).status === 503,
      );
      expect(await create(store, 'Rex')).toEqual(notBegun);
      expect(await stored()).toEqual([]);
    });

    test('because PostgreSQL ends its session gets Retry-After', async () => {
      await session.query(
        "begin; select pg_advisory_xact_lock(hashtext('pet'))",
      );
      const creation = create(store, 'Rex');
      const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await eventually(
        async () => (await session.query(terminate)).rows.length > 0,
      );
      expect(await creation).toEqual(notBegun);
      await session.query('commit');
      expect(await stored()).toEqual([]);
    });
  },
);
