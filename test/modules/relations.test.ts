import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Args, Ctx, FieldResolver, Int, Resolver, Root } from 'type-graphql';
import type { GraphQLContext } from '../../src/api/graphql/context.ts';
import { ListArgs } from '../../src/api/graphql/types.ts';
import type { Module } from '../../src/api/module.ts';
import { buildApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config/config.ts';
import {
  type Pet,
  petQuerySchema,
} from '../../src/modules/pets/pet.schemas.ts';
import { PetService } from '../../src/modules/pets/pet.service.ts';
import { PetType } from '../../src/modules/pets/pet.types.ts';
import { Log } from '../../src/runtime/log/log.ts';
import { validator } from '../../src/validation/validator.ts';
import { sql, stock } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { fieldsForAll } from '../support/resolvers.ts';
import { rest } from '../support/rest.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';

/**
 * Fields below the root that read animals: their cost is limited, and the
 * animals that they read are charged.
 */

const queryOf = validator(petQuerySchema, { isLenient: true });

@Resolver(() => PetType)
class FriendsResolver {
  constructor(private readonly service: PetService) {}

  @FieldResolver(() => [PetType])
  async friends(
    @Args(() => ListArgs) args: ListArgs,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Pet[]> {
    return (await this.service.list(queryOf({ ...args }), call)).items;
  }

  @FieldResolver(() => PetType, { nullable: true })
  friend(
    @Root() pet: Pet,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet | null> {
    return this.service.find(pet.id, call);
  }

  @FieldResolver(() => Int)
  beyond(): number {
    return 2 ** 40;
  }
}

const relations: Module = {
  tag: { name: 'Relations', description: 'Pets and their friends.' },
  open: ({ database }) => ({
    resolvers: [new FriendsResolver(new PetService(database))],
  }),
};

fieldsForAll({ Pet: ['friend', 'friends', 'beyond'] });
const store = storeForAll({}, () => stock(store.database, 5), {
  more: [relations],
});

test('relations are resolved on every level', async () => {
  const { data } = await graphqlText(store, {
    query:
      '{ pets(limit: 2) { id friend { id } friends(limit: 1) { id friends(limit: 2) { id } } } }',
  });
  const friends = [{ id: '1', friends: [{ id: '1' }, { id: '2' }] }];
  expect(data.pets).toEqual(
    ['1', '2'].map((id) => ({ id, friend: { id }, friends })),
  );
});

describe('the cost of an operation is the product along its path', () => {
  test.each<[number, string, Record<string, unknown>?]>([
    [1 + 10 * (1 + 1), '{ pets(limit: 10) { id friend { id } } }'],
    [
      1 + 10 * (1 + 2),
      '{ pets(limit: 10) { a: friend { id } b: friend { id } } }',
    ],
    [
      1 + 10 * (2 + 9 * (2 + 8)),
      '{ pets(limit: 10) { friends(limit: 9) { friends(limit: 8) { id } } } }',
    ],
    [
      1 + 10 * (1 + 1 + 50),
      'query ($n: Int = 20) { pets(limit: 10) { friends(limit: $n) { id } } }',
      { n: 50 },
    ],
    [
      1 + 10 * (1 + 1 + 100),
      '{ petsConnection(first: 10) { edges { node { friends(limit: 100) { id } } } } }',
    ],
    [
      1 + 10,
      '{ petsConnection(first: 10) { edges { cursor node { id } } pageInfo { endCursor } } }',
    ],
  ])('%i: %s', async (cost, query, variables = {}) => {
    await onNode(store, { GRAPHQL_MAX_COST: `${cost - 1}` }, async (node) => {
      for (let time = 1; time <= 2; time += 1) {
        const { errors } = await graphqlText(node, { query, variables });
        const message = `The operation may cost too much: ${cost}, at most ${cost - 1}. Ask for fewer fields or smaller pages.`;
        expect(errors).toMatchObject([
          { message, extensions: { code: 'QUERY_TOO_COSTLY', status: 400 } },
        ]);
      }
    });
    await onNode(store, { GRAPHQL_MAX_COST: `${cost}` }, async (node) => {
      expect(
        (await graphqlText(node, { query, variables })).errors,
      ).toBeUndefined();
    });
  });
});

const unitsLeft = async (node: ServiceNode) =>
  Number(
    /r=(\d+)/.exec(
      `${(await rest(node, '/v1/pets/none')).headers.ratelimit}`,
    )?.[1],
  );

describe('with a quota', () => {
  const charged = (query: string) =>
    onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const { headers, errors } = await graphqlText(node, { query });
      expect(errors).toBeUndefined();
      const reported = Number(/r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);
      expect(await unitsLeft(node)).toBe(reported - 1);
      return before - reported;
    });

  test.each<[number, string]>([
    // Three animals with five friends each, by a list; then with one friend
    // each.
    [1 + 3 + 3 * 5, '{ pets(limit: 3) { friends { id } } }'],
    [1 + 3 + 3, '{ pets(limit: 3) { friend { id } } }'],
    [
      2 + 3 + 3 * 5 + 5,
      '{ pets(limit: 3) { friends { id } } petsConnection { edges { cursor } } }',
    ],
    [
      1 + 3 + 1 + 3 * 5,
      '{ __schema { queryType { name } } pets(limit: 3) { friends { id } } }',
    ],
  ])('%i units are charged for %s', async (units, query) => {
    expect(await charged(query)).toBe(units);
  });

  test('a subscription is charged for each event, and for the animals that its fields read', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const query =
        'subscription { petAdded(after: "3") { id friends(limit: 3) { id } } }';
      const stream = await openStream(node, { body: { query } });
      const friends = ['1', '2', '3'].map((id) => ({ id }));
      expect((await stream.until(2)).map(({ data }) => data)).toEqual(
        ['4', '5'].map((id) => ({ data: { petAdded: { id, friends } } })),
      );
      const { json } = await rest(node, '/v1/pets', {
        method: 'POST',
        json: { name: 'Rex', categoryId: 1 },
      });
      await stream.until(3);
      stream.close();
      await eventually(async () => node.app.subscriptions.count === 0);
      await sql(store.database, `delete from pet where id = ${json.id}`);
      // The subscription, three events, the friends of each, the creation, and
      // this request.
      expect(before - (await unitsLeft(node))).toBe(1 + 3 + 3 * 3 + 2 + 1);
    });
  });
});

test('what is made for a client that has left does not count as unread', async () => {
  const { app, database } = store;
  const { read } = database;
  const wanted = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  database.read = async (...statement) => {
    if (statement[0].name.startsWith('find')) {
      wanted.resolve();
      await proceed.promise;
    }
    return read.apply(database, statement) as never;
  };
  const query = 'subscription { petAdded(after: "4") { friend { id } } }';
  const stream = await openStream(store, { body: { query } });
  await wanted.promise;
  stream.close();
  await eventually(async () => app.subscriptions.count === 0);
  // The last count of unread bytes.
  await sleep(200);
  proceed.resolve();
  await sleep(50);
  database.read = read;
  expect(app.unread.budget.used).toBe(0);
});

test.each(['true', 'false'])(
  'a value that its scalar refuses is an internal error, and the log has its cause (compiled: %s)',
  async (GRAPHQL_JIT) => {
    const lines: string[] = [];
    const log = new Log(
      { level: 'info', sample: 1 },
      { write: (line: string) => void lines.push(line) },
    );
    const config = loadConfig({ GRAPHQL_JIT });
    const app = await buildApp({
      config,
      database: store.database,
      modules: store.modules,
      log,
    });
    for (let time = 1; time <= 3; time += 1) {
      lines.length = 0;
      const headers = { authorization: `Bearer ${store.key}` };
      const body = { query: '{ pets(limit: 1) { beyond } }' };
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        headers,
        body,
      });
      const extensions = { code: 'INTERNAL_SERVER_ERROR', status: 500 };
      expect(response.json()).toMatchObject({
        data: null,
        errors: [{ path: ['pets', 0, 'beyond'], extensions }],
      });
      const failure = lines
        .map((line) => JSON.parse(line))
        .find(({ err }) => err !== undefined);
      expect(failure).toMatchObject({
        level: 50,
        reqId: response.headers['x-request-id'],
      });
      expect(failure.err.message).toContain(
        'Int cannot represent non 32-bit signed integer value',
      );
    }
    await app.close();
  },
);
