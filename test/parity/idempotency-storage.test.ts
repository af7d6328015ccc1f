// runs: embedded, postgres

import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import {
  expireIdempotencyKeys,
  removeExpiredKeys,
} from '#engine/access/idempotency/expiry.js';
import { Call } from '#engine/call.js';
import { badInput, type StoreError, Unavailable } from '#engine/errors.js';
import { Records } from '#engine/records/records.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import type { NewPet, Pet } from '../../src/pets/pet.schemas.ts';
import { type Created, creators } from '../support/apis.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { sql, whileWritesWait, withRows } from '../support/database-access.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually, onPostgres } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { openSession } from '../support/session.ts';
import { type Store, startStore } from '../support/store.ts';

/**
 * Creations that are repeated after the first one failed or was slow, and the
 * removal of expired keys.
 */

const rex = { name: 'Rex', categoryId: 5 };

async function names(store: Store): Promise<string[]> {
  return (await rest(store, '/v1/pets')).json.map(
    ({ name }: { name: string }) => name,
  );
}

describe.each(creators)('through $name', ({ create }) => {
  test('while the first has no outcome, the second waits until its deadline, and both may be repeated', async () => {
    const store = await startStore({ DATABASE_STATEMENT_TIMEOUT_MS: '1000' });
    const once = randomUUID();
    const send = (name: string) => create(store, { ...rex, name }, { once });
    const responses = await whileWritesWait(store.database, () =>
      Promise.all([send('Rex'), send('Rex'), send('Ada')]),
    );
    const message =
      'The database did not say whether this was stored: it may have been. Send it again with the same Idempotency-Key.';
    const unknown = { code: 'SERVICE_UNAVAILABLE', status: 503, message };
    const underWay =
      'A request with this Idempotency-Key is still under way; send it again shortly.';
    const inUse = {
      code: 'IDEMPOTENCY_KEY_IN_USE',
      status: 409,
      message: underWay,
    };
    const outcomes = [unknown, inUse, inUse];
    expect(responses).toEqual(
      outcomes.map((outcome) => ({
        outcome,
        retryAfter: 1,
        replayed: undefined,
      })),
    );
    expect(await send('Rex')).toMatchObject({
      outcome: { name: 'Rex' },
      replayed: 'true',
    });
    expect(await names(store)).toEqual(['Rex']);
    await store.close();
  });

  test('a replay is complete although another release stored the key, with other generated columns', async () => {
    const store = await startStore();
    const once = randomUUID();
    const { outcome } = await create(store, rex, { once });
    await sql(
      store.database,
      `update idempotency_key set generated = generated || 'more'::text`,
    );
    expect(await create(store, rex, { once })).toEqual({
      outcome,
      retryAfter: undefined,
      replayed: 'true',
    });

    // When the row of the replay cannot be read, the other creation of its
    // batch is stored and acknowledged.
    const { database } = store;
    const { rows } = database;
    const isBehind = async () =>
      database.queues.some(
        ({ operation, waiting }) => operation === 'insert' && waiting === 2,
      );
    let isAhead = false;
    database.rows = async (statement, values) => {
      if (statement.name === 'find_one_pet') throw Unavailable.late();
      if (statement.name === 'insert_one_pet') {
        isAhead = true;
        await eventually(isBehind);
      }
      return rows.call(database, statement, values) as never;
    };
    const ahead = create(store, { ...rex, name: 'ahead' });
    await eventually(async () => isAhead);
    const both = await Promise.all([
      create(store, rex, { once }),
      create(store, { ...rex, name: 'beside' }),
    ]);
    expect(both).toMatchObject([
      { outcome: { status: 503 } },
      { outcome: { name: 'beside' } },
    ]);
    await ahead;
    database.rows = rows;
    expect(await names(store)).toEqual(['Rex', 'ahead', 'beside']);
    await store.close();
  });

  test('a key that another process stores after the snapshot of the statement is found by the next one', async () => {
    const store = await startStore();
    const once = randomUUID();
    let writes = 0;
    const otherIsFirst: Parameters<typeof withRows>[1] =
      (rows) => async (statement, values) => {
        const found = await rows(statement, values);
        if (!statement.isWrite) return found as never;
        writes += 1;
        if (writes > 1) return found as never;
        throw Object.assign(new Error('this is a test'), {
          code: '23505',
          table: 'idempotency_key',
        });
      };
    const created = await withRows(store.database, otherIsFirst, () =>
      create(store, rex, { once }),
    );
    expect(created).toMatchObject({
      outcome: { name: 'Rex' },
      replayed: 'true',
    });
    expect(writes).toBeGreaterThan(1);
    expect(await names(store)).toEqual(['Rex']);
    await store.close();
  });

  test('the key is found when the database writes bytes in another format', async () => {
    const store = await startStore({ DATABASE_POOL_MAX: '2' });
    const once = randomUUID();
    const { outcome } = await create(store, rex, { once });
    for (const _ of [1, 2])
      await sql(store.database, 'set bytea_output = escape');
    expect(await create(store, rex, { once })).toEqual({
      outcome,
      retryAfter: undefined,
      replayed: 'true',
    });
    await store.close();
  });
});

/** @returns creations, with one key unless it is given */
const creating = (store: Store) => {
  const pets = new Records<Pet, NewPet>(store.database, PetEntity);
  return (name: string, id = 1, key = 0) => {
    const call = new Call();
    call.caller = { id, name: 'a', scopes: ['write', 'all'] };
    const hash = Buffer.alloc(32, key);
    call.claim = { keyId: 7, operation: 'createPet', hash };
    const pet = { ...rex, name, status: 'available' } as const;
    return pets
      .create(pet as never, call)
      .catch(({ code }: StoreError) => code);
  };
};

type Creating = ReturnType<typeof creating>;

describe('concurrent creations with one key', () => {
  test.each([
    ['stored', 'Rex'],
    ['refused', 'bad'],
  ])('those that wait for one that is %s get one outcome', async (_, first) => {
    const store = await startStore();
    await sql(
      store.database,
      `alter table pet add constraint judged check (name <> 'bad')`,
    );
    const create = creating(store);
    const others = Array.from({ length: 100 }, () => 'Rex');
    const all = [first, ...others, 'Ada'].map((name) => create(name));
    const answers: unknown[] = await Promise.all(all);
    const rexes = answers.slice(1, -1);
    expect(rexes[0]).toMatchObject({ name: 'Rex' });
    expect(rexes).toEqual(others.map(() => rexes[0]));
    expect(answers[0]).toEqual(first === 'bad' ? 'BAD_USER_INPUT' : rexes[0]);
    expect(answers.at(-1)).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(await names(store)).toEqual(['Rex']);
    await store.close();
  });

  test('a caller has a share of those that wait, and the next one finds room; all find room again afterwards', async () => {
    const store = await startStore();
    const create = creating(store);
    const burst = () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const held: Parameters<typeof withRows>[1] =
        (rows) => async (statement, values) => {
          await promise;
          return rows(statement, values) as never;
        };
      return withRows(store.database, held, async () => {
        const first = create('Rex');
        const waiting = Array.from({ length: 5000 }, () => create('Rex'));
        const next = create('Rex', 2);
        // A refusal does not wait for the first.
        await waiting.at(-1);
        resolve();
        return Promise.all([first, next, ...waiting]);
      });
    };
    for (const _ of ['stores it', 'finds it']) {
      const outcomes = await burst();
      const refused = outcomes.filter((one) => one === 'SERVICE_UNAVAILABLE');
      expect(refused).toHaveLength(5000 - 4096);
      expect(outcomes.slice(1, 4098)).toEqual(Array(4097).fill(outcomes[0]));
    }
    expect(await names(store)).toEqual(['Rex']);
    await store.close();
  });
});

test('a rule that returns no promise judges a creation, and its repetition', async () => {
  const store = await startStore();
  let isClosed = false;
  const check = () => {
    if (isClosed) throw badInput('It is closed.');
  };
  const options = { check: check as never };
  const pets = new Records<Pet, NewPet>(store.database, PetEntity, options);
  const create = (key: number) => {
    const call = new Call();
    const hash = Buffer.alloc(32, key);
    call.claim = { keyId: 7, operation: 'createPet', hash };
    return pets.create({ ...rex, status: 'available' } as never, call);
  };
  const first = await create(1);
  isClosed = true;
  expect(await create(1)).toEqual(first);
  await expect(create(2)).rejects.toThrow('It is closed.');
  await store.close();
});

test('expired keys are removed a thousand at a time, and no others', async () => {
  const store = await startStore();
  const left = async () =>
    (
      await sql<[string]>(
        store.database,
        'select count(*) from idempotency_key',
      )
    )[0]?.[0];
  await sql(
    store.database,
    `insert into idempotency_key (key_id, operation, hash, fingerprint, generated, created_at)
     select 1, 'createPet', sha256(n::text::bytea), '', '{1}', now() - make_interval(hours => n % 2 * 25, secs => n)
     from generate_series(1, 5000) n`,
  );
  const seen: unknown[] = [];
  for (let time = 1; time <= 4; time += 1)
    seen.push([await removeExpiredKeys(store.database, 24), await left()]);
  expect(seen).toEqual([
    [true, '4000'],
    [true, '3000'],
    [false, '2500'],
    [false, '2500'],
  ]);

  // The service removes them by itself, and stops when it is closed.
  await sql(
    store.database,
    `update idempotency_key set created_at = now() - interval '2 days'`,
  );
  const app = Fastify();
  expireIdempotencyKeys(app, store.database, 24, 1);
  await app.ready();
  await eventually(async () => (await left()) === '0');
  await app.close();
  await store.close();
});

test('a key that is used again while expired ones are removed is kept', async () => {
  const store = await startStore();
  const insert = `insert into idempotency_key (key_id, operation, hash, fingerprint, generated, created_at)
    values (1, 'createPet', sha256('a'), '', '{1}', now() - interval '25 hours')`;
  await sql(store.database, insert);
  const rows: typeof store.database.rows = async (statement, values) => {
    const found = await store.database.rows(statement, values);
    // Another process removes the key, and its client creates with it again.
    if (!statement.isWrite)
      await sql(
        store.database,
        'update idempotency_key set created_at = now()',
      );
    return found as never;
  };
  await removeExpiredKeys({ rows }, 24);
  expect(
    await sql(store.database, 'select count(*) from idempotency_key'),
  ).toEqual([['1']]);
  await store.close();
});

test('the removal logs no line while the database is unreachable, but logs every other error', async () => {
  const lines: string[] = [];
  const app = Fastify({
    logger: { level: 'info', stream: { write: (line) => lines.push(line) } },
  });
  let attempts = 0;
  const rows = async () => {
    attempts += 1;
    throw attempts < 2 ? Unavailable.late() : new Error('this is a bug');
  };
  expireIdempotencyKeys(app, { rows } as never, 24, 1);
  await eventually(async () => attempts > 1 && lines.length > 0);
  await app.close();
  expect(lines[0]).toContain('this is a bug');
});

/** Statements of two nodes have begun, and have found no key, before either gets the lock. */
async function atOnce<T>(database: TestDatabase, creations: () => Promise<T>) {
  const session = await openSession(database);
  await session.query("begin; select pg_advisory_xact_lock(hashtext('pet'))");
  const created = creations();
  const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`;
  await eventually(async () => (await session.query(waiting)).rowCount === 2);
  await session.query('commit');
  await session.end();
  return created;
}

(onPostgres ? test : test.skip)(
  'a key that another node has stored in the meantime is found (PostgreSQL only: the embedded store has one backend)',
  async () => {
    const database = await createTestDatabase();
    const other = { ...database, drop: async () => undefined };
    const stores = [
      await startStore({}, { database: other }),
      await startStore({}, { database }),
    ];
    const once = randomUUID();
    const { key } = stores[0] as Store;
    const created = await atOnce(database, () =>
      Promise.all(
        stores.map((store, at) =>
          (creators[at] as (typeof creators)[number]).create(store, rex, {
            once,
            key,
          }),
        ),
      ),
    );
    const [one, another] = created as [Created, Created];
    expect(one.outcome).toEqual(another.outcome);
    expect([one.replayed, another.replayed].sort()).toEqual([
      'true',
      undefined,
    ]);
    expect(await names(stores[0] as Store)).toEqual(['Rex']);
    // Other creations of its statement are stored.
    const [here, there] = stores.map(creating) as [Creating, Creating];
    const others = [2, 3, 4, 5].map((at) => `${at}`);
    const [first, ...all] = await atOnce(database, () =>
      Promise.all([
        here('Ada', 1, 1),
        there('Ada', 1, 1),
        ...others.map((name) => there(name, 1, Number(name))),
      ]),
    );
    expect(all[0]).toEqual(first);
    expect(all).toMatchObject(['Ada', ...others].map((name) => ({ name })));
    const stored = await names(stores[0] as Store);
    expect(stored.toSorted()).toEqual([...others, 'Ada', 'Rex']);
    for (const store of stores) await store.close();
  },
);
