import 'reflect-metadata';
import { Args, Ctx, FieldResolver, Int, Query, Resolver, Root } from 'type-graphql';
import type { GraphQLContext } from '../../src/api/graphql/operation.ts';
import { ListArgs } from '../../src/api/graphql/types.ts';
import { buildApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import { contracts } from '../../src/contracts.ts';
import type { Module } from '../../src/module.ts';
import { petQuerySchema } from '../../src/pets/pet.schemas.ts';
import { PetService } from '../../src/pets/pet.service.ts';
import { PetType } from '../../src/pets/pet.types.ts';
import { petsModule } from '../../src/pets/pets.module.ts';
import { Log } from '../../src/runtime/log/log.ts';
import { checker } from '../../src/storage/input/check.ts';
import { sql, stock } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { afterAll, describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { rest } from '../support/rest.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';
import { ToyType } from './toys/toy.types.ts';
import { toysModule } from './toys/toys.module.ts';

/** Fields below the root that read: what they may cost is limited, and what they read is charged. */

const queryOf = checker(petQuerySchema, { isLenient: true });

@Resolver(() => ToyType)
class OwnersResolver {
  constructor(private readonly service: PetService) {}

  @FieldResolver(() => [PetType])
  async owners(@Args(() => ListArgs) args: ListArgs, @Ctx() { call }: GraphQLContext): Promise<readonly PetType[]> {
    return (await this.service.list(queryOf({ ...args }), call)).items;
  }

  @FieldResolver(() => PetType, { nullable: true })
  owner(@Root() toy: ToyType, @Ctx() { call }: GraphQLContext): Promise<PetType | null> {
    return this.service.find(toy.id, call);
  }

  @FieldResolver(() => Int)
  beyond(): number {
    return 2 ** 40;
  }
}

@Resolver(() => PetType)
class FriendsResolver {
  constructor(private readonly service: PetService) {}

  @FieldResolver(() => [PetType])
  async friends(@Args(() => ListArgs) args: ListArgs, @Ctx() { call }: GraphQLContext): Promise<readonly PetType[]> {
    return (await this.service.list(queryOf({ ...args }), call)).items;
  }
}

const relations: Module = {
  tag: { name: 'Relations', description: 'Toys and their owners.' },
  open({ database }) {
    const pets = new PetService(database);
    return { resolvers: [new OwnersResolver(pets), new FriendsResolver(pets)] };
  },
};

/** type-graphql keeps declarations for the whole process, and other test files run in it after this one. */
function forgetFields(names: string[]): void {
  const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
  const isKept = ({ name, methodName }: { name: string; methodName?: string }) => !names.includes(methodName ?? name);
  storage.fieldResolvers = storage.fieldResolvers.filter(isKept);
  storage.fields = storage.fields.filter(isKept);
  for (const [target, fields] of storage.fieldsCache) storage.fieldsCache.set(target, fields.filter(isKept));
  for (const type of storage.objectTypes) type.fields = type.fields?.filter(isKept);
}

const store = storeForAll(
  {},
  async () => {
    await stock(store.database, 5);
    const toys = `select 'toy ' || n, 'ball', '2026-11-21T12:34:56.789Z' from generate_series(1, 3) n`;
    await sql(store.database, `insert into toy (name, kind, made_at) ${toys}`);
  },
  { more: [toysModule, relations] },
);
afterAll(() => forgetFields(['owners', 'owner', 'beyond', 'friends', 'relatives']));

test('a relation is answered, level by level', async () => {
  const { data } = await graphqlText(store, {
    query: '{ toys(limit: 2) { id owner { id } owners(limit: 1) { id friends(limit: 2) { id } } } }',
  });
  const owners = [{ id: '1', friends: [{ id: '1' }, { id: '2' }] }];
  expect(data.toys).toEqual(['1', '2'].map((id) => ({ id, owner: { id }, owners })));
});

describe('the cost of an operation is the product along its path', () => {
  test.each<[number, string, Record<string, unknown>?]>([
    [1 + 10 * (1 + 1), '{ toys(limit: 10) { id owner { id } } }'],
    [1 + 10 * (1 + 2), '{ toys(limit: 10) { a: owner { id } b: owner { id } } }'],
    [1 + 10 * (2 + 9 * (2 + 8)), '{ toys(limit: 10) { owners(limit: 9) { friends(limit: 8) { id } } } }'],
    [1 + 10 * (1 + 1 + 50), 'query ($n: Int = 20) { toys(limit: 10) { owners(limit: $n) { id } } }', { n: 50 }],
    [1 + 10 * (1 + 1 + 100), '{ toysConnection(first: 10) { edges { node { owners(limit: 100) { id } } } } }'],
    [1 + 10, '{ toysConnection(first: 10) { edges { cursor node { id } } pageInfo { endCursor } } }'],
  ])('%i: %s', async (cost, query, variables = {}) => {
    await onNode(store, { GRAPHQL_MAX_COST: `${cost - 1}` }, async (node) => {
      for (let time = 1; time <= 2; time += 1) {
        const { errors } = await graphqlText(node, { query, variables });
        const message = `The operation may cost too much: ${cost}, at most ${cost - 1}. Ask for fewer fields or smaller pages.`;
        expect(errors).toMatchObject([{ message, extensions: { code: 'QUERY_TOO_COSTLY', status: 400 } }]);
      }
    });
    await onNode(store, { GRAPHQL_MAX_COST: `${cost}` }, async (node) => {
      expect((await graphqlText(node, { query, variables })).errors).toBeUndefined();
    });
  });
});

const unitsLeft = async (node: ServiceNode) =>
  Number(/r=(\d+)/.exec(`${(await rest(node, '/v1/toys/none')).headers.ratelimit}`)?.[1]);

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
    // Each with its five owners, one after the other by their lists; and with one.
    [1 + 3 + 3 * 5, '{ toys { owners { id } } }'],
    [1 + 3 + 3, '{ toys { owner { id } } }'],
    [2 + 3 + 3 * 5 + 3, '{ toys { owners { id } } toysConnection { edges { cursor } } }'],
    [1 + 3 + 1 + 3 * 5, '{ __schema { queryType { name } } toys { owners { id } } }'],
  ])('%i units are charged for %s', async (units, query) => {
    expect(await charged(query)).toBe(units);
  });

  test('a subscription is charged for each event, and for what fields below it read', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      const before = await unitsLeft(node);
      const query = 'subscription { petAdded(after: "3") { id friends(limit: 3) { id } } }';
      const stream = await openStream(node, { body: { query } });
      const friends = ['1', '2', '3'].map((id) => ({ id }));
      expect((await stream.until(2)).map(({ data }) => data)).toEqual(
        ['4', '5'].map((id) => ({ data: { petAdded: { id, friends } } })),
      );
      const { json } = await rest(node, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
      await stream.until(3);
      stream.close();
      await eventually(async () => node.app.subscriptions.count === 0);
      await sql(store.database, `delete from pet where id = ${json.id}`);
      // The subscription, three events, the friends of each, the creation, and this look.
      expect(before - (await unitsLeft(node))).toBe(1 + 3 + 3 * 3 + 2 + 1);
    });
  });

  test('an operation that is refused reads nothing', async () => {
    const query = '{ toys { owners { id } } }';
    await onNode(store, { QUOTA_PER_MINUTE: '30' }, async (node) => {
      // 19 units each: the second one may overdraw the quota.
      for (let time = 1; time <= 2; time += 1) expect((await graphqlText(node, { query })).errors).toBeUndefined();
      const { status, headers, data, errors } = await graphqlText(node, { query });
      const extensions = { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: expect.any(Number) };
      expect([status, data, errors]).toMatchObject([429, undefined, [{ extensions }]]);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    });
  });
});

test('a list below the root that does not say what it costs keeps the service from starting', async () => {
  @Resolver(() => PetType)
  class Forgetful {
    @FieldResolver(() => [PetType])
    relatives(): unknown[] {
      return [];
    }

    @Query(() => Int)
    nothing(): number {
      return 0;
    }
  }
  const tag = { name: 'Forgetful', description: 'A module that forgets.' };
  const forgetful = { tag, open: () => ({ resolvers: [new Forgetful()] }) };
  await expect(contracts([petsModule, forgetful])).rejects.toThrow('Pet.relatives must say what it costs');
});

test.each(['true', 'false'])(
  'a value that its scalar refuses is a failure with a trace in the log (compiled: %s)',
  async (GRAPHQL_JIT) => {
    const lines: string[] = [];
    const log = new Log({ level: 'info', sample: 1 }, { write: (line: string) => void lines.push(line) });
    const config = loadConfig({ GRAPHQL_JIT });
    const app = await buildApp({ config, database: store.database, modules: store.modules, log });
    for (let time = 1; time <= 3; time += 1) {
      lines.length = 0;
      const headers = { authorization: `Bearer ${store.key}` };
      const body = { query: '{ toys(limit: 1) { beyond } }' };
      const response = await app.inject({ method: 'POST', url: '/graphql', headers, body });
      const extensions = { code: 'INTERNAL_SERVER_ERROR', status: 500 };
      expect(response.json()).toMatchObject({ data: null, errors: [{ path: ['toys', 0, 'beyond'], extensions }] });
      const failure = lines.map((line) => JSON.parse(line)).find(({ err }) => err !== undefined);
      expect(failure).toMatchObject({ level: 50, reqId: response.headers['x-request-id'] });
      expect(failure.err.message).toContain('Int cannot represent non 32-bit signed integer value');
    }
    await app.close();
  },
);
