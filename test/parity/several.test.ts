// runs: embedded, postgres, pgbouncer, postgres-12
import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { createEach } from '#engine/api/resources/several.js';
import { Call } from '#engine/call.js';
import { StoreError, Unavailable } from '#engine/errors.js';
import { importLines } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import type { Repository } from '#engine/records/repository.js';
import {
  decimalSchema,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { PetService } from '../../src/pets/pet.service.ts';
import {
  EntityRecords,
  type Repositories,
} from '../modules/repositories/entity-records.ts';
import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';

/** Several creations in one request (docs/add-a-module.md). */

const coin = resource({
  name: 'Coin',
  description: 'A piece of money.',
  path: '/coins',
  operations: ['list', 'create', 'createMany', 'follow'],
  members: {
    name: textSchema({ maxLength: 20, description: 'What is on it.' }),
    worth: withDefault(
      decimalSchema(12, 2, { description: '`1` when omitted.' }),
      '1',
    ),
  },
  owner: 'createdBy',
});
type Coin = ItemOf<typeof coin>;
type NewCoin = NewOf<typeof coin>;
const CoinEntity = defineEntity({
  name: 'Coin',
  tableName: 'coin',
  properties: coin.columns,
  indexes: [{ properties: ['createdBy', 'id'] }],
  uniques: [{ properties: ['name'] }],
});
let coins: Repository<Coin, NewCoin>;
/** The first check of a request ends last. */
const check = async ({ name = '' }: Partial<NewCoin>) => {
  const turns = name.startsWith('first') ? 20 : 0;
  for (let turn = 0; turn < turns; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  if (name === 'late') throw Unavailable.late();
  if (name !== 'forged') return;
  const details = { king: 'Otto' };
  throw new StoreError('CONFLICT', 'It is forged.', { details });
};
type Class = Repositories;
const coinsOn = (Collection: Class): Module => ({
  tag: { name: 'Coins', description: 'Coins.' },
  entities: [CoinEntity],
  migrations: [
    migrationOf('2027_05_01_000000_create_coin', [
      `create table "coin" ("id" bigserial primary key, "name" text not null, "worth" numeric(12,2) not null,
        "created_by" text not null, "version" int not null default 1)`,
      'create index "coin_created_by_id_index" on "coin" ("created_by", "id")',
      'alter table "coin" add constraint "coin_name_unique" unique ("name")',
    ]),
  ],
  open({ database }) {
    const options = { ...coin.lists, check };
    coins = new Collection<Coin, NewCoin>(database, CoinEntity, options);
    return { resources: [coin.serve(coins)] };
  },
});
describe.each<[string, Class]>([
  ['Records', Records],
  ['MikroORM', EntityRecords],
])('on %s', (_name, Collection) => {
  const store = storeForAll({}, undefined, { more: [coinsOn(Collection)] });
  beforeEach(async () => {
    await sql(store.database, 'delete from coin');
    await sql(store.database, 'delete from idempotency_key');
  });

  /** An item or an error for each, or the error of the request. */
  interface Answer {
    status?: number;
    results?: unknown[];
    error?: { code: string; message: string; status: number };
    replayed: unknown;
  }
  type Add = (
    inputs: unknown,
    options?: { once?: string; key?: string; node?: ServiceNode },
  ) => Promise<Answer>;
  const headersOf = (once?: string): Record<string, string> =>
    once === undefined ? {} : { 'idempotency-key': once };

  const byRest: Add = async (inputs, { once, key, node = store } = {}) => {
    const { json, status, headers } = await rest(node, '/v1/coins/batch', {
      method: 'POST',
      json: { inputs },
      headers: headersOf(once),
      key: key ?? store.key,
    });
    const replayed = headers['idempotent-replayed'];
    if (status !== 200) return { error: json, replayed };
    const results = json.map(({ item, error }: any) =>
      item ? { ...item, id: `${item.id}` } : error,
    );
    return { results, replayed };
  };
  const byGraphQL: Add = async (inputs, { once, key, node = store } = {}) => {
    const query =
      'mutation ($inputs: [NewCoin!]!) { createCoins(inputs: $inputs) { id name worth createdBy version } }';
    const {
      data,
      errors = [],
      headers,
    } = await graphqlText(
      node,
      { query, variables: { inputs } },
      key ?? store.key,
      headersOf(once),
    );
    const replayed = headers['idempotent-replayed'];
    const failures = errors.map(({ message, extensions, path }) => ({
      at: path?.[1],
      failure: { message, ...extensions },
    }));
    if (!data?.createCoins) return { error: failures[0]?.failure, replayed };
    const results = data.createCoins.map(
      (item: unknown, place: number) =>
        item ?? failures.find(({ at }) => at === place)?.failure,
    );
    return { results, replayed };
  };
  const apis = [
    { name: 'REST', add: byRest },
    { name: 'GraphQL', add: byGraphQL },
  ];
  const pairs = apis.flatMap((first) =>
    apis.map((second) => ({ first, second })),
  );

  const seen = (name: string, worth = '1.00') => ({
    id: expect.stringMatching(/^\d+$/),
    name,
    worth,
    createdBy: expect.stringMatching(/^key:\d+$/),
    version: 1,
  });
  const named = (...names: string[]) => names.map((name) => ({ name }));
  const stored = async () =>
    (await coins.list({ limit: 100 } as never, Call.ofOperator()))
      .items as readonly Coin[];
  const namesStored = async () => (await stored()).map(({ name }) => name);
  const taken = {
    code: 'CONFLICT',
    message: 'Another one has this name.',
    status: 409,
  };
  const forged = {
    code: 'CONFLICT',
    message: 'It is forged.',
    status: 409,
    king: 'Otto',
  };
  const torn = { code: 'CONFLICT', message: 'It is torn.' };
  const tooLong = {
    code: 'BAD_USER_INPUT',
    message: 'name must be at most 20 characters long.',
    status: 400,
  };
  const hundred = Array.from({ length: 100 }, (_, at) => `coin ${at}`);

  describe.each(apis)('through $name', ({ add }) => {
    test.each<[string, object[], unknown[]]>([
      ['one', named('a'), [seen('a')]],
      [
        'several, with defaults',
        [{ name: 'a', worth: '2.5' }, { name: 'b' }],
        [seen('a', '2.50'), seen('b')],
      ],
      [
        'an invalid one',
        named('a', 'x'.repeat(21), 'b'),
        [seen('a'), tooLong, seen('b')],
      ],
      [
        'a value twice',
        named('a', 'b', 'a', 'c'),
        [seen('a'), seen('b'), taken, seen('c')],
      ],
      [
        'one that a rule refuses, with the members of its error',
        named('forged', 'a'),
        [forged, seen('a')],
      ],
      ['none that is good', named('forged', 'x'.repeat(21)), [forged, tooLong]],
    ])('%s: an item or an error for each', async (_what, inputs, results) => {
      expect(await add(inputs)).toEqual({ results, replayed: undefined });
      const good = results.filter((one: any) => one.id);
      expect(await namesStored()).toEqual(good.map(({ name }: any) => name));
    });

    test.each<[string, unknown]>([
      ['none', []],
      ['101', named(...hundred, 'one more')],
    ])('%s are refused as a whole', async (_what, inputs) => {
      expect(await add(inputs)).toEqual({
        error: {
          code: 'BAD_USER_INPUT',
          message:
            'inputs must be an array of 1 to 100 values, each an object.',
          status: 400,
        },
        replayed: undefined,
      });
      expect(await stored()).toEqual([]);
    });

    test('one bad of a hundred leaves 99, whose ids ascend in the order of the inputs', async () => {
      await add(named('coin 57'));
      const { results = [] } = await add(named(...hundred));
      expect(results[57]).toEqual(taken);
      const ids = results.flatMap(({ id }: any) => id ?? []).map(Number);
      expect(ids).toHaveLength(99);
      expect(ids).toEqual(ids.toSorted((one, other) => one - other));
      expect(await namesStored()).toHaveLength(100);
    });

    test('far too many inputs are refused as such, also beside another request', async () => {
      const names = Array.from({ length: 100 }, (_, at) => `coin ${at}`);
      const empty = Array.from({ length: 131_072 }, () => ({}));
      const [answer, ...refused] = await Promise.all(
        [named(...names), empty, [empty]].map((inputs) => add(inputs)),
      );
      expect(answer?.results).toHaveLength(100);
      const status = { error: expect.objectContaining({ status: 400 }) };
      expect(refused).toMatchObject([status, status]);
    });

    test('150 small requests at once leave each other room for their answers', async () => {
      const names = Array.from({ length: 150 }, (_, at) => `coin ${at}`);
      const answers = await Promise.all(names.map((name) => add(named(name))));
      expect(answers).toEqual(
        names.map((name) => ({ results: [seen(name)], replayed: undefined })),
      );
    });

    test('the order of the inputs is that of the ids, even when the rule takes longer for the first', async () => {
      await add(named('first', 'b', 'c'));
      expect(await namesStored()).toEqual(['first', 'b', 'c']);
    });

    test('a live list has them in their order', async () => {
      const stream = await openStream(store, {
        method: 'GET',
        path: '/v1/coins',
      });
      await add(named('first', 'forged', 'b', 'c'));
      const events = await stream.until(3);
      expect(events.map(({ data }) => data.name)).toEqual(['first', 'b', 'c']);
      stream.close();
    });

    test('a repeated request with its key gets the items, and what failed is tried again', async () => {
      const first = await add(named('a', 'b'), { once: 'again' });
      await add(named('taken'));
      const inputs = named('c', 'taken', 'd');
      const partly = await add(inputs, { once: 'partly' });
      expect(partly.results).toEqual([seen('c'), taken, seen('d')]);
      await sql(store.database, "delete from coin where name = 'taken'");
      const completed = await add(inputs, { once: 'partly' });
      const { results = [] } = partly;
      expect(completed.results).toEqual([
        results[0],
        seen('taken'),
        results[2],
      ]);
      expect(completed.replayed).toBeUndefined();
      expect(await add(named('a', 'b'), { once: 'again' })).toEqual({
        ...first,
        replayed: 'true',
      });
    });

    test('with a key, each input has its place: another one there is refused', async () => {
      await add(named('a', 'b'), { once: 'places' });
      const { results } = await add(named('a', 'x', 'c'), { once: 'places' });
      expect(results).toMatchObject([
        { name: 'a' },
        { code: 'IDEMPOTENCY_KEY_REUSED', status: 422 },
        { name: 'c' },
      ]);
      expect(await namesStored()).toEqual(['a', 'b', 'c']);
    });

    test('an invalid input keeps the places of those after it', async () => {
      const wrong = named('x'.repeat(21), 'b');
      const first = await add(wrong, { once: 'invalid' });
      const again = await add(named('a', 'b'), { once: 'invalid' });
      expect(again.results).toEqual([seen('a'), first.results?.[1]]);
    });

    test('they belong to their caller, who needs the scope', async () => {
      const { id, key } = await store.keys.issue({ name: 'ada' });
      const { results } = await add(named('a'), { key });
      expect(results).toEqual([{ ...seen('a'), createdBy: `key:${id}` }]);
      const reader = await store.keys.issue({ name: 'eve', scope: 'read' });
      const { error } = await add(named('b'), { key: reader.key });
      expect(error).toMatchObject({ code: 'FORBIDDEN', status: 403 });
      expect(await namesStored()).toEqual(['a']);
    });

    test('an input that may be sent again has `retryAfter`', async () => {
      const { results } = await add(named('a', 'late', 'forged'));
      const code = 'SERVICE_UNAVAILABLE';
      expect(results).toMatchObject([
        { name: 'a' },
        { code, retryAfter: 1 },
        {},
      ]);
      expect(results?.[2]).not.toHaveProperty('retryAfter');
    });

    test('when the database is lost and none is stored, the request fails as a whole', async () => {
      const { database } = store;
      const { rows, transaction } = database;
      database.rows = async () => {
        throw new StoreError('SERVICE_UNAVAILABLE', 'It is lost.');
      };
      database.transaction = database.rows as never;
      try {
        const inputs = named('x'.repeat(21), 'a', 'b');
        const { error } = await add(inputs);
        expect(error).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
      } finally {
        Object.assign(database, { rows, transaction });
      }
    });
  });

  test.each(pairs)(
    'created through $first.name with a key, and repeated through $second.name: the same items',
    async ({ first, second }) => {
      const options = { once: `${first.name}-${second.name}` };
      const created = await first.add(named(...hundred), options);
      expect(created.results).toHaveLength(100);
      const again = await Promise.all([
        second.add(named(...hundred), options),
        second.add(named(...hundred), options),
      ]);
      for (const one of again)
        expect(one).toEqual({ ...created, replayed: 'true' });
      expect(await namesStored()).toHaveLength(100);
    },
  );

  test.each<[unknown, string]>([
    [undefined, 'inputs is required.'],
    ['all', 'inputs must be an array, not a string.'],
    [[{ name: 'a' }, null], 'inputs[1] must be an object, not null.'],
  ])('inputs that GraphQL cannot express: %j', async (inputs, message) => {
    const { error } = await byRest(inputs);
    expect(error).toMatchObject({ status: 400, message });
    expect(await stored()).toEqual([]);
  });

  test('a value of a wrong type is refused by itself in REST', async () => {
    const { results } = await byRest([{ name: 7 }, {}, { name: 'a' }]);
    expect(results).toMatchObject([
      { message: 'name must be a string, not a number.' },
      { message: 'name is required.' },
      { name: 'a' },
    ]);
  });

  test('the cost of a mutation counts each input, and what is selected of each', async () => {
    const query =
      'mutation ($inputs: [NewCoin!]!) { createCoins(inputs: $inputs) { id } }';
    const variables = { inputs: named(...hundred) };
    await onNode(store, { GRAPHQL_MAX_COST: '100' }, async (node) => {
      const { errors } = await graphqlText(node, { query, variables });
      expect(errors?.[0]?.message).toMatch(/cost too much: 101, at most 100/);
    });
  });

  test('a failure of the service is the answer only when none is created', async () => {
    const item = { id: 1 };
    const failure = new StoreError('SERVICE_UNAVAILABLE', 'Later.');
    const refusal = new StoreError('BAD_USER_INPUT', 'Never.');
    const answer = (...outcomes: object[]) => {
      const service = { createMany: async () => outcomes };
      return createEach(service as never, [], new Call());
    };
    const some = [item, failure, refusal];
    expect(await answer(...some)).toEqual(some);
    expect(await answer(refusal, refusal)).toEqual([refusal, refusal]);
    await expect(answer(refusal, failure)).rejects.toBe(failure);
    const late = Unavailable.late();
    await expect(answer(refusal, late, late)).rejects.toBe(late);
    const unknown = Unavailable.outcomeUnknown();
    await expect(answer(unknown, unknown)).rejects.toBe(unknown);
    // One of them may be stored, the others are to be sent again.
    for (const one of [unknown, new Error('It is not shown.')]) {
      const mixed = [refusal, late, one, late];
      expect(await answer(...mixed)).toEqual(mixed);
    }
  });

  test('an input keeps its claim, whether the service refuses one before it, or creates more for it', async () => {
    let isClosed = true;
    const service = {
      create: async (input: NewCoin, call: Call) => {
        if (isClosed && input.name === 'a')
          throw new StoreError('CONFLICT', 'It is closed.');
        const created = await coins.create(input, call);
        const copy = { ...input, name: `${input.name} copy` } as NewCoin;
        await coins.create(copy, call);
        return created;
      },
    };
    const add = () => {
      const hash = Buffer.alloc(32, 7);
      const claim = { keyId: 0, operation: 'createCoins', hash };
      const call = Object.assign(Call.ofOperator(), { claim });
      const inputs = ['a', 'b', 'c'].map((name) => ({ name, worth: '1' }));
      return createEach(service as never, inputs as never[], call);
    };
    const first = await add();
    expect(first).toMatchObject([{}, { name: 'b' }, { name: 'c' }]);
    isClosed = false;
    const again = await add();
    expect(again).toEqual([
      expect.objectContaining({ name: 'a' }),
      ...first.slice(1),
    ]);
    expect(await add()).toEqual(again);
    expect(await stored()).toHaveLength(6);
  });

  test('a collection whose `create` writes a second table does so, however an item is created', async () => {
    class Minted extends (Collection as typeof Records)<Coin, NewCoin> {
      override create(input: NewCoin, call = new Call()) {
        const creates = [CoinEntity, PetEntity];
        const frame = { creates, input };
        return store.database.transaction(call, frame, async () => {
          const created = await super.create(input, call);
          const { name } = input;
          await pets.create({ name, categoryId: 1n, status: 'sold' } as never);
          if (name === 'torn') throw new StoreError('CONFLICT', 'It is torn.');
          return created;
        });
      }
    }
    const { database } = store;
    const pets = new PetService(database);
    const minted = new Minted(database, CoinEntity, coin.lists);
    const ofOperator = () => {
      const hash = Buffer.alloc(32, 8);
      const claim = { keyId: 0, operation: 'mint', hash };
      return Object.assign(Call.ofOperator(), { claim });
    };
    const input = (name: string) => ({ name, worth: '1' }) as never;
    await store.empty();
    await minted.create(input('a'), Call.ofOperator());
    const several = ['b', 'torn', 'c'].map(input);
    const first = await createEach(minted, several, ofOperator());
    expect(first).toMatchObject([{ name: 'b' }, torn, { name: 'c' }]);
    expect(await createEach(minted, several, ofOperator())).toEqual(first);
    const lines = async function* () {
      yield { line: 1, input: { name: 'd', worth: '1.00' } };
    };
    const [collection] = coin.serve(minted).collections;
    const quiet = { progress() {}, refused() {} };
    const signal = new AbortController().signal;
    const transfer = { collection, signal, ...quiet } as never;
    await importLines(lines() as never, transfer);
    const all = ['a', 'b', 'c', 'd'];
    expect(await namesStored()).toEqual(all);
    const query = { limit: 10 } as never;
    const { items } = await pets.list(query, Call.ofOperator());
    expect(items.map(({ name }) => name)).toEqual(all);
  });

  test('in a transaction, one that is refused undoes all', async () => {
    const frame = { creates: [CoinEntity], input: {} };
    const call = Call.ofOperator();
    const inputs = ['a', 'b', 'a'].map((name) => ({ name, worth: '1' }));
    const work = () => createEach(coins, inputs as never[], call);
    await expect(
      store.database.transaction(call, frame, work),
    ).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await stored()).toEqual([]);
  });
});
