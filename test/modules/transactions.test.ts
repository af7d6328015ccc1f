// runs: embedded, postgres

import { hash } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { Call } from '#engine/call.js';
import { Database } from '#engine/database/database.js';
import { StoreError } from '#engine/errors.js';
import { modelOf } from '#engine/process/model.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import type { Int64 } from '#engine/validation/int64.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { PetService } from '../../src/pets/pet.service.ts';
import { createTestDatabase, optionsFor } from '../support/database.ts';
import { sql } from '../support/database-access.ts';
import {
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import {
  eventually,
  onPostgres,
  ownsSessions,
  runFile,
} from '../support/process.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { openSession, urlOf } from '../support/session.ts';
import { startStore, storeForAll } from '../support/store.ts';
import { CheckupEntity, type Checkups } from './checkups/checkup.entity.ts';
import type { Checkup } from './checkups/checkup.schemas.ts';
import { checkupsModule } from './checkups/checkups.module.ts';
import { ToyEntity, type Toys } from './toys/toy.entity.ts';
import { toysModule } from './toys/toys.module.ts';

/** Several tables in one transaction (docs/add-a-module.md). */

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('a transaction', () => {
  const store = storeForAll({}, undefined, {
    more: [toysModule, checkupsModule],
  });
  let pets: PetService;
  let toys: Toys;
  let checkups: Checkups;

  beforeAll(() => {
    pets = new PetService(store.database);
    toys = new Records(store.database, ToyEntity, { filters: ['kind'] });
    checkups = new Records(store.database, CheckupEntity);
  });
  beforeEach(async () => {
    await sql(store.database, 'delete from toy');
    await sql(store.database, 'delete from checkup');
  });

  const toy = (name: string) =>
    ({ name, kind: 'ball', madeAt: new Date(0) }) as never;
  const checkup = (petId: unknown, reason = 'x-ray') =>
    ({ petId, reason, state: 'planned' }) as never;
  const pet = { name: 'Rex', categoryId: 1n as Int64, status: 'available' };
  const counts = async () =>
    (
      await sql(
        store.database,
        'select (select count(*) from toy), (select count(*) from checkup)',
      )
    )[0]?.map(Number);
  const creates = [PetEntity, CheckupEntity, ToyEntity];
  const frame = { creates, input: {} };
  const transact = <Answer>(
    work: (em: EntityManager) => Promise<Answer>,
    call = new Call(),
  ) => store.database.transaction(call, frame, work);
  const claimed = (key: string, timeout?: number) => {
    const call = new Call(timeout);
    call.claim = {
      keyId: 0,
      operation: 'createAll',
      hash: hash('sha256', key, 'buffer'),
    };
    return call;
  };
  const visit = async (call = new Call()) => {
    const { id } = await pets.create(pet as never, call);
    const one = await checkups.create(checkup(id));
    const changed = await checkups.change(one.id, {
      version: 1,
      reason: 'vaccination',
    } as never);
    return { changed, toy: await toys.create(toy('Ball')) };
  };

  test('stores several tables, sees its own rows, and others see them after its end', async () => {
    const call = new Call();
    const answer = await transact(async () => {
      const made = await visit(call);
      const petId = made.changed?.petId;
      expect(await pets.find(petId)).toMatchObject({ name: 'Rex' });
      expect((await toys.list({ limit: 5 } as never)).items).toEqual([
        made.toy,
      ]);
      expect(await toys.count({} as never)).toMatchObject({ count: 1 });
      return made;
    }, call);
    expect(answer.changed).toMatchObject({ reason: 'vaccination', version: 2 });
    expect(await toys.find(answer.toy.id)).toEqual(answer.toy);
    expect(await counts()).toEqual([1, 1]);
    expect(call.items).toBe(1);
  });

  test.each<[string, (em: EntityManager) => Promise<unknown>, object]>([
    [
      'its own error',
      async () => {
        throw new StoreError('CONFLICT', 'The till is closed.');
      },
      { code: 'CONFLICT', message: 'The till is closed.' },
    ],
    [
      'an error of what it calls, with the code of a lost database',
      async () => {
        const members = { code: 'ECONNREFUSED' };
        throw Object.assign(new Error('The lab is closed.'), members);
      },
      { code: 'ECONNREFUSED', message: 'The lab is closed.' },
    ],
    [
      'a relation that does not exist',
      () => checkups.create(checkup(999_999_999n)),
      {
        code: 'BAD_USER_INPUT',
        message: 'petId must be the id of one that exists.',
      },
    ],
    [
      'an error that the work ignores',
      () => checkups.create(checkup(999_999_999n)).catch(() => undefined),
      { code: 'BAD_USER_INPUT' },
    ],
    [
      'a stale version',
      async () => {
        const [{ id }] = (await checkups.list({ limit: 1 } as never)).items as [
          Checkup,
        ];
        return checkups.change(id, { version: 1, note: 'x' } as never);
      },
      { code: 'CONFLICT', details: { version: 2 } },
    ],
    [
      'a relation that does not exist, of an entity',
      async (em) => {
        em.create(CheckupEntity, checkup(999_999_999n));
        await em.flush();
      },
      {
        code: 'BAD_USER_INPUT',
        message: 'petId must be the id of one that exists.',
      },
    ],
    [
      'a table that it does not name',
      (em) => em.execute(`insert into "api_key" ("name") values ('x')`),
      {
        message:
          'The transaction must name the entity of api_key in its `creates`.',
      },
    ],
    [
      'work that it does not await',
      async () => {
        void toys.create(toy('Late'));
      },
      { message: 'The transaction must await all that it does.' },
    ],
    [
      'another transaction in it',
      () => transact(async () => undefined),
      { message: expect.stringContaining('A transaction is open here') },
    ],
    [
      'a live list in it, whose pages others share',
      async () => void new LiveList(toys).subscribe({} as never),
      { message: 'A live list needs no transaction.' },
    ],
    [
      'a transaction of the EntityManager in it',
      (em) => em.transactional(async () => undefined),
      { message: expect.stringContaining('A transaction is open here') },
    ],
  ])('stores and counts nothing after %s', async (_what, fail, error) => {
    const call = new Call();
    const work = async (em: EntityManager) => {
      await visit(call);
      await fail(em);
    };
    await expect(transact(work, call)).rejects.toMatchObject(error);
    expect(await counts()).toEqual([0, 0]);
    expect(call.items).toBe(0);
  });

  test('creates no rows of a table that it does not name', async () => {
    const only = { creates: [PetEntity], input: {} };
    const creation = store.database.transaction(new Call(), only, () =>
      visit(),
    );
    await expect(creation).rejects.toThrow('the entity of checkup');
  });

  test('cannot be used after its end', async () => {
    const ended = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    await transact(async () => {
      late = ended.promise.then(() => toys.create(toy('Late')));
    });
    ended.resolve();
    await expect(late).rejects.toThrow('The transaction has ended');
    expect(await counts()).toEqual([0, 0]);
  });

  test('ends at the deadline of its call, and stores nothing', async () => {
    const call = new Call(200);
    const late = transact(async () => {
      await visit();
      await new Promise(() => undefined);
    }, call);
    await expect(late).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(await counts()).toEqual([0, 0]);
    expect(await transact(() => visit())).toMatchObject({
      toy: { name: 'Ball' },
    });
  });

  test('that is rolled back anyway is never stored, however late it is', async () => {
    for (const statement of [
      'create function sleep() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return null; end $$',
      'create constraint trigger slow after insert on toy deferrable initially deferred for each row execute function sleep()',
    ])
      await sql(store.database, statement);
    const onRolledBack = () => undefined;
    const call = Object.assign(new Call(500), { onRolledBack });
    try {
      await expect(transact(() => visit(), call)).rejects.toMatchObject({
        message: 'The database did not answer in time; try again shortly.',
      });
    } finally {
      await sql(store.database, 'drop function sleep cascade');
    }
    expect(await counts()).toEqual([0, 0]);
  });

  test('is done once for an idempotency key, and its answer is repeated as it was', async () => {
    const calls = Array.from({ length: 8 }, () => claimed('once'));
    const answers = await Promise.all(
      calls.map((call) => transact(() => visit(), call)),
    );
    expect(await counts()).toEqual([1, 1]);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(calls.filter(({ isReplay }) => isReplay)).toHaveLength(7);
    await checkups.remove(answers[0]?.changed?.id, {} as never);
    const again = claimed('once');
    expect(await transact(() => visit(), again)).toEqual(answers[0]);
    expect(again.items).toBe(1);
    const other = { creates, input: { name: 'other' } };
    await expect(
      store.database.transaction(claimed('once'), other, () => visit()),
    ).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  });

  test('with the key of one under way waits without a connection, and is 409 at its deadline', async () => {
    const begun = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const work = async () => {
      begun.resolve();
      await held.promise;
      return visit();
    };
    const first = transact(work, claimed('slow'));
    await begun.promise;
    const others = Array.from({ length: 16 }, () =>
      transact(work, claimed('slow')),
    );
    try {
      const ofNoTable = () =>
        store.database.transaction(
          new Call(9000),
          { creates: [] },
          async () => 'done',
        );
      // The embedded store has one connection.
      if (ownsSessions) expect(await ofNoTable()).toBe('done');
      const late = transact(work, claimed('slow', 200));
      await expect(late).rejects.toMatchObject({
        code: 'IDEMPOTENCY_KEY_IN_USE',
      });
    } finally {
      held.resolve();
      await Promise.all([first, ...others]);
    }
    expect(await counts()).toEqual([1, 1]);
  });

  test('leaves its idempotency key free when it fails', async () => {
    const failing = transact(async () => {
      await visit();
      throw new Error('failed');
    }, claimed('free'));
    await expect(failing).rejects.toThrow('failed');
    const call = claimed('free');
    await transact(() => visit(), call);
    expect(call.isReplay).toBe(false);
  });

  test('that creates refuses an idempotency key without its input', async () => {
    const call = claimed('no input');
    const run = () =>
      store.database.transaction(call, { creates }, () => visit());
    await expect(run()).rejects.toThrow(
      'The transaction needs its `input` for an Idempotency-Key.',
    );
    expect(await counts()).toEqual([0, 0]);
  });

  test('stores nothing for an idempotency key whose answer is too long to be repeated', async () => {
    const answering = (length: number, key?: string) =>
      transact(
        async () => {
          await toys.create(toy('one'));
          return 'x'.repeat(length);
        },
        key ? claimed(key) : new Call(),
      );
    const most = 2 ** 20;
    await expect(answering(most, 'long')).rejects.toThrow(
      `Nothing is stored: with an Idempotency-Key an answer has at most ${most} bytes, not ${most + 6}.`,
    );
    expect(await counts()).toEqual([0, 0]);
    const longest = await answering(most - 6, 'long');
    expect(await answering(most - 6, 'long')).toBe(longest);
    await answering(most);
    expect(await counts()).toEqual([2, 0]);
  });

  test('tells live lists after the commit', async () => {
    const events = new LiveList(toys).subscribe({} as never);
    await events.next();
    const next = events.next();
    let told = 0;
    toys.onInserted(() => {
      told += 1;
    });
    const made = await transact(async () => {
      const answer = await visit();
      expect(told).toBe(0);
      return answer;
    });
    expect(told).toBe(1);
    expect((await next).value).toMatchObject({ items: [made.toy] });
    await events.return();
    await expect(
      transact(async () => {
        await visit();
        throw new Error('failed');
      }),
    ).rejects.toThrow('failed');
    expect(told).toBe(1);
  });

  test('precedes each creation that begins after it, so that no walk and no live list misses its rows', async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const transaction = transact(async (em) => {
      await toys.create(toy('first'));
      begun.resolve();
      await held.promise;
      await em.execute(
        `insert into "toy" ("name", "kind", "made_at") values ('second', 'ball', now())`,
      );
    });
    await begun.promise;
    let isCreated = false;
    const creation = toys.create(toy('third')).then(() => {
      isCreated = true;
    });
    const waiting =
      "select from pg_locks where locktype = 'advisory' and not granted";
    // The embedded store has one backend, which the transaction holds.
    if (onPostgres)
      await eventually(
        async () =>
          isCreated || (await sql(store.database, waiting)).length > 0,
      );
    held.resolve();
    await Promise.all([transaction, creation]);
    const { items } = await toys.list({ limit: 3 } as never);
    expect(items.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  });

  test('removes and creates in one, and 32 at once in any order of tables leave connections to others', async () => {
    const work = async (at: number) => {
      const creations = [
        async () => {
          const { id } = await toys.create(toy('removed'));
          await toys.remove(id, {} as never);
          await toys.create(toy(`${at}`));
        },
        () => pets.create(pet as never),
      ];
      if (at % 2 === 1) creations.reverse();
      for (const create of creations) await create();
    };
    await Promise.all([
      ...Array.from({ length: 32 }, (_, at) => transact(() => work(at))),
      ...Array.from({ length: 32 }, () => toys.create(toy('alone'))),
      ...Array.from({ length: 32 }, () => pets.list({ limit: 1 } as never)),
    ]);
    expect(await counts()).toEqual([64, 0]);
  });

  test('has items of the EntityManager as those of Records', async () => {
    const { id } = await pets.create(pet as never);
    const item = await transact(async (em) => {
      const created = em.create(CheckupEntity, {
        petId: id,
        reason: 'x-ray',
        state: 'planned',
      });
      await em.flush();
      return created;
    });
    expect({ ...item }).toEqual(await checkups.find(item.id));
  });

  const otherSession = async () => {
    const [[name] = []] = await sql<[string]>(
      store.database,
      'select current_database()',
    );
    return openSession({ env: { DATABASE_URL: `postgres://host/${name}` } });
  };

  // A pooler gives its clients other process ids.
  const ofSessions = ownsSessions ? test : test.skip;
  ofSessions('that a rule refuses keeps its connection', async () => {
    const backends = new Set<unknown>();
    for (let time = 0; time < 30; time += 1) {
      const refused = transact(async () => {
        await visit();
        const [[pid] = []] = await sql(
          store.database,
          'select pg_backend_pid()',
        );
        backends.add(pid);
        throw new StoreError('CONFLICT', 'It is over.');
      });
      await expect(refused).rejects.toMatchObject({ code: 'CONFLICT' });
    }
    // A pool has ten connections.
    expect(backends.size).toBeLessThanOrEqual(10);
    expect(await counts()).toEqual([0, 0]);
  });
  ofSessions(
    'stores nothing when its connection is killed, and the next one works',
    async () => {
      const other = await otherSession();
      const killed = transact(async () => {
        await visit();
        const pid = await sql(store.database, 'select pg_backend_pid()');
        await other.query('select pg_terminate_backend($1)', pid[0]);
        await toys.create(toy('after'));
      });
      await expect(killed).rejects.toMatchObject({
        code: 'SERVICE_UNAVAILABLE',
        isOutcomeUnknown: false,
      });
      expect(await counts()).toEqual([0, 0]);
      await transact(() => visit());
      await other.end();
    },
  );

  ofSessions(
    'that a read-only server refuses discards the other sessions',
    async () => {
      const sessions = async () => {
        const text = 'select pg_backend_pid(), pg_sleep(0.1)';
        const found = [1, 2, 3].map(() => sql(store.database, text));
        return (await Promise.all(found)).map((rows) => rows[0]?.[0]);
      };
      const before = await sessions();
      const refused = transact(async (em) => {
        await em.execute('set transaction read only');
        await visit();
      });
      await expect(refused).rejects.toMatchObject({
        message: 'The database cannot write now; try again shortly.',
      });
      for (const pid of await sessions()) expect(before).not.toContain(pid);
    },
  );

  ofSessions.each([
    ['57014', 'database statements are failing'],
    ['57P01', 'the database is lost'],
  ])('that ends with %s is reported: %s', async (code, line) => {
    const [[name] = []] = await sql<[string]>(
      store.database,
      'select current_database()',
    );
    const url = urlOf({ env: { DATABASE_URL: `postgres://host/${name}` } });
    const lines: unknown[] = [];
    const note = (fields: object, msg: string) => lines.push([msg, fields]);
    const log = { info: note, warn: note };
    const options = await optionsFor({ DATABASE_URL: url });
    const model = modelOf(store.modules);
    const database = await Database.open({ ...options, log }, model);
    try {
      await sql(database, 'select 1');
      const fail = `do $$ begin raise 'a test' using errcode = '${code}'; end $$`;
      const failing = database.transaction(new Call(), frame, (em) =>
        em.execute(fail),
      );
      await expect(failing).rejects.toMatchObject({ status: 503 });
      expect(lines).toEqual([[line, { code, reason: 'a test' }]]);
    } finally {
      await database.close();
    }
  });

  ofSessions(
    'waits for its tables in one order, and holds none meanwhile',
    async () => {
      const other = await otherSession();
      await other.query('begin');
      await other.query("select pg_advisory_xact_lock(hashtext('checkup'))");
      const work = async () => 'done';
      const both = [
        [ToyEntity, CheckupEntity],
        [CheckupEntity, ToyEntity],
      ].map((creates) =>
        store.database.transaction(new Call(), { creates, input: {} }, work),
      );
      const held = async (isGranted: boolean) => {
        const text = `select count(*) from pg_locks where locktype = 'advisory'
        and granted = $1 and pid in (select pid from pg_stat_activity where datname = current_database())`;
        const { rows } = await other.query(text, [isGranted]);
        return Number(rows[0].count);
      };
      try {
        await eventually(async () => (await held(false)) === 2);
        expect(await held(true)).toBe(1);
        await other.query('commit');
        expect(await Promise.all(both)).toEqual(['done', 'done']);
      } finally {
        await other.end();
        await Promise.allSettled(both);
      }
    },
  );

  ofSessions('runs again after a deadlock of changed rows', async () => {
    const ids = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const { id } = await pets.create({ ...pet, name } as never);
        return (await checkups.create(checkup(id))).id;
      }),
    );
    const other = await otherSession();
    // The transaction finds the deadlock, and so it ends.
    await other.query("set deadlock_timeout = '1h'");
    await other.query('begin');
    await other.query('select from checkup where id = $1 for update', [ids[1]]);
    let runs = 0;
    const call = new Call();
    await transact(async () => {
      runs += 1;
      for (const id of ids) {
        const change = { version: 1, note: 'changed' } as never;
        await checkups.change(id, change, call);
        await checkups.find(id, call);
        if (runs > 1 || id !== ids[0]) continue;
        const lock = 'select from checkup where id = $1 for update';
        void other
          .query(lock, [id])
          .then(() => other.query('commit'))
          .then(() => other.end());
      }
    }, call);
    expect(runs).toBeGreaterThan(1);
    expect(call.items).toBe(4);
  });
});

// The embedded store cuts one that is stopped after 30 seconds.
const signals = [
  'SIGKILL',
  ...(onPostgres ? ['SIGSTOP' as const] : []),
] as const;
test.each(signals)(
  'a process that gets %s in a transaction leaves nothing of it, what it acknowledged, and no lock',
  async (signal) => {
    const database = await createTestDatabase();
    const store = await startStore({}, { database, more: [toysModule] });
    const file = new URL('interrupted.js', import.meta.url).pathname;
    const env = { ...database.env, DATABASE_STATEMENT_TIMEOUT_MS: '1000' };
    const { child, output, ended } = runFile(file, [JSON.stringify(env)], {});
    try {
      await eventually(async () => output.stdout.includes('open'));
      child.kill(signal);
      if (signal === 'SIGKILL') await ended;
      const toys: Toys = new Records(store.database, ToyEntity);
      const next = { name: 'next', kind: 'ball', madeAt: new Date(0) };
      await toys.create(next as never);
      const { items } = await toys.list({ limit: 5 } as never);
      const names = items.map(({ name }) => name);
      expect(names).toEqual(['kept 1', 'kept 2', 'next']);
    } finally {
      child.kill('SIGKILL');
      await ended;
      await store.close();
    }
  },
);
