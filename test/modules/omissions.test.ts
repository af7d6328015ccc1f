// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import {
  Arg,
  Field,
  FieldResolver,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
} from 'type-graphql';
import { type TSchema, Type } from 'typebox';
import { ID } from '#engine/api/graphql/types.js';
import type { Routes } from '#engine/api/http/routes.js';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { pageOf, success } from '#engine/api/rest/documented-responses.js';
import { contracts } from '#engine/process/contracts.js';
import { Records } from '#engine/records/records.js';
import { Table } from '#engine/records/rows/table.js';
import type { Int64 } from '#engine/validation/int64.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  itemSchema,
  moment,
  nullable,
  textSchema,
  use,
  withDefault,
} from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { modules } from '../../src/modules.ts';
import type { NewPet, Pet } from '../../src/pets/pet.schemas.ts';
import type { PetService } from '../../src/pets/pet.service.ts';
import { browserMethods } from '../support/contract.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { type RestRequest, rest } from '../support/rest.ts';
import { serviceOf } from '../support/service.ts';
import { startStore, storeForAll } from '../support/store.ts';
import { CheckupEntity } from './checkups/checkup.entity.ts';
import { checkupSchema } from './checkups/checkup.schemas.ts';
import { CheckupType } from './checkups/checkup.types.ts';
import { ToyEntity } from './toys/toy.entity.ts';
import { toySchema } from './toys/toy.schemas.ts';
import { ToyType } from './toys/toy.types.ts';

/**
 * A module that omits a declaration keeps the service from starting, or gets
 * the safe default.
 */

const summary = 'It does something.';
const some = { maxItems: 2 };
const described = { description: summary };
const tag = { name: 'Forgetful', description: 'A module that forgets.' };
const open = (
  apis: { routes?: (app: Routes) => void; resolvers?: object[] },
  entities: Module['entities'] = [],
) => contracts(serviceOf([...modules, { tag, entities, open: () => apis }]));
const thing = {
  200: success(
    Type.Object({ id: Type.Integer() }, { $id: 'Thing' }),
    'A thing.',
  ),
};
const seen = {
  200: success(
    Type.Object({ seen: Type.String() }, { $id: 'Seen' }),
    'What was seen.',
  ),
};
const post = (schema: object) => (app: Routes) => {
  app.post(
    '/things',
    {
      schema: { operationId: 'addThing', summary, response: thing, ...schema },
    },
    async () => ({ id: 1 }),
  );
};
const get =
  (operationId: string, $id: string, querystring?: TSchema) =>
  (app: Routes) => {
    const response = {
      200: success(Type.Object({ id: Type.Integer() }, { $id }), 'A thing.'),
    };
    app.get(
      '/things',
      {
        schema: {
          operationId,
          summary,
          response,
          ...(querystring && { querystring }),
        },
      },
      async () => ({
        id: 1,
      }),
    );
  };
const body = (members: Parameters<typeof Type.Object>[0]) =>
  post({ body: Type.Object(members, { $id: 'NewThing' }) });

@Resolver()
class Adding {
  @Mutation(() => Boolean, described)
  addThing(): boolean {
    return true;
  }
}

describe('the service does not start', () => {
  test.each<[string, (app: Routes) => void, string | RegExp]>([
    [
      'a body without a schema',
      post({}),
      'POST /v1/things needs a schema for its body.',
    ],
    [
      'text of any length',
      body({ name: Type.String() }),
      /No rule checks name \{"type":"string"\}/,
    ],
    [
      'texts of which a page could exceed 16 MiB',
      body({
        name: Type.String({ maxLength: 27_000 }),
        note: nullable(Type.String({ maxLength: 963 })),
      }),
      'A page could exceed 16 MiB: name and note have up to 27963 characters in all; at most 27962 are allowed.',
    ],
    [
      'an integer without an upper bound',
      body({ count: Type.Integer({ minimum: 0 }) }),
      /No rule checks/,
    ],
    [
      'an unknown format',
      body({ name: Type.String({ maxLength: 5, format: 'colour' }) }),
      /No rule checks/,
    ],
    [
      'the length of a number',
      body({ count: Type.Number({ maxLength: 5 } as never) }),
      /No rule checks maxLength of/,
    ],
    [
      'a nested object with any text',
      body({ size: Type.Object({ name: Type.String() }) }),
      /No rule checks name/,
    ],
    [
      'a list of any length',
      body({ tags: Type.Array(Type.Integer()) }),
      /No rule checks/,
    ],
    [
      'any text in a query',
      get('listThings', 'Thing', Type.Object({ name: Type.String() })),
      /No rule checks/,
    ],
    [
      'the operationId of another module',
      get('listPets', 'Thing'),
      'GET /v1/pets and GET /v1/things have the same operationId listPets.',
    ],
    [
      'the $id of another module',
      get('listThings', 'Pet'),
      'Two different schemas have the $id Pet.',
    ],
  ])('with %s', async (_what, routes, message) => {
    await expect(open({ routes })).rejects.toThrow(message);
  });

  test('with several faults, each of which is named', async () => {
    const tables = ['bone', 'ball'].map((tableName) =>
      defineEntity({
        name: `Odd ${tableName}`,
        tableName,
        properties: {
          id: p.bigint('bigint').primary().autoincrement(),
          size: p.integer(),
        },
      }),
    );
    const endless = Type.Array(Type.Integer());
    const module: Module = {
      tag,
      entities: tables,
      open: ({ database }) => ({
        resolvers: tables.map((entity) => {
          new Records<any, any>(database, entity, { filters: ['size'] });
          return new List();
        }),
        routes(app) {
          post({})(app);
          get('listPets', 'Pet')(app);
          const members = { tags: endless, name: Type.String() };
          const $id = 'Bad';
          app.put(
            '/bad',
            {
              schema: { body: Type.Object(members, { $id }), response: thing },
            },
            async () => ({ id: 1 }),
          );
        },
      }),
    };
    const failure = await contracts(serviceOf([...modules, module])).catch(
      (error) => error,
    );
    const lines = failure.message.split('\n');
    expect(lines.sort()).toEqual([
      "Each combination of the filters of ball needs an index; the entity lacks { properties: ['size', 'id'] }.",
      "Each combination of the filters of bone needs an index; the entity lacks { properties: ['size', 'id'] }.",
      'GET /v1/pets and GET /v1/things have the same operationId listPets.',
      expect.stringMatching(/^No rule checks name {"type":"string"}/),
      expect.stringMatching(/^No rule checks tags {"type":"array".*maxItems/),
      'POST /v1/things needs a schema for its body.',
      'Query.things must say what it costs (complexity).',
      'Two different schemas have the $id Pet.',
    ]);
  });

  @Resolver()
  class SameField {
    @Query(() => ToyType, { nullable: true, ...described })
    pets() {
      return null;
    }
  }
  @Resolver()
  class List {
    @Query(() => [ToyType], described)
    things(): unknown[] {
      return [];
    }
  }
  // A type of its own: type-graphql keeps the field for the whole process, and
  // other test files run in it after this one.
  @ObjectType('Relative', described)
  class RelativeType {
    @Field(() => ID, described) readonly id!: Int64;
  }
  @Resolver(() => RelativeType)
  class ListBelowTheRoot {
    @Query(() => RelativeType, { nullable: true, ...described })
    relative() {
      return null;
    }
    @FieldResolver(() => [RelativeType], described)
    relatives(): unknown[] {
      return [];
    }
  }
  @ObjectType('Kin', described)
  class KinType {
    @Field(() => ID, described) readonly id!: Int64;
  }
  @Resolver(() => KinType)
  class ListAsMember {
    @Query(() => KinType, { nullable: true, ...described })
    kin() {
      return null;
    }
    @FieldResolver(() => [KinType], described)
    id(): unknown[] {
      return [];
    }
  }
  test.each<[string, object[], string]>([
    [
      'a list in place of a member',
      [new ListAsMember()],
      'Kin.id is a member: give the field with Kin another name.',
    ],
    [
      'the field of another module',
      [new SameField()],
      'Two resolvers define the GraphQL field Query.pets.',
    ],
    [
      'a list without a cost',
      [new List()],
      'Query.things must say what it costs (complexity).',
    ],
    [
      'a list below the root',
      [new ListBelowTheRoot()],
      'Relative.relatives must say what it costs',
    ],
  ])('with %s in GraphQL', async (_what, resolvers, message) => {
    await expect(open({ resolvers })).rejects.toThrow(message);
  });

  test('with an argument or a field without a type', () => {
    const message = (what: string) =>
      new RegExp(`You need to provide explicit type for ${what}`);
    expect(() => {
      class Wrong {
        @Query(() => Boolean)
        thing(@Arg('id') id: string): boolean {
          return id === '';
        }
      }
      return Wrong;
    }).toThrow(message("argument named 'id' of 'thing'"));
    expect(() => {
      class WrongType {
        @Field() readonly id!: string;
      }
      return WrongType;
    }).toThrow(message("'id' of 'WrongType' class"));
  });

  test('with a table that no migration creates', async () => {
    const properties = { id: p.bigint('bigint').primary().autoincrement() };
    const forgotten = defineEntity({
      name: 'Forgotten',
      tableName: 'forgotten',
      properties,
    });
    await expect(
      startStore(
        {},
        { more: [{ tag, entities: [forgotten], open: () => ({}) }] },
      ),
    ).rejects.toThrow(
      /^The tables are not those of the entities:\n {2}forgotten does not exist\nWrite a migration/,
    );
  });

  test('with a member of an item that may be absent, and not null', () => {
    const item = (note: TSchema) => itemSchema({ note }, { $id: 'Thing' });
    const text = textSchema({ description: 'Anything.' });
    expect(() => item(Type.Optional(text))).toThrow(
      'note of Thing may be absent, so it must be nullable: Type.Optional(nullable(...)).',
    );
    expect(() =>
      [Type.Optional(nullable(text)), withDefault(text, '-'), text].map(item),
    ).not.toThrow();
  });

  test('with a decimal that has more digits in the API than in the table', async () => {
    const price = nullable(
      decimalSchema(38, 3, { description: 'What it costs.' }),
    );
    const item = Type.Object(
      { ...checkupSchema.properties, price },
      { $id: 'Checkup' },
    );
    @Resolver()
    class CheckupOnly {
      @Query(() => CheckupType, { nullable: true, ...described })
      checkup() {
        return null;
      }
    }
    const schema = {
      operationId: 'listCheckups',
      summary,
      response: { 200: pageOf(item, 'Checkups', 'A page of checkups.') },
    };
    const routes = (app: Routes) =>
      void app.get('/checkups', { schema }, async () => []);
    await expect(
      open({ routes, resolvers: [new CheckupOnly()] }, [CheckupEntity]),
    ).rejects.toThrow(
      'Checkup.price has other digits in the REST schema than in the table.',
    );
  });

  test('with a column that only one of the APIs shows, or that has different types', async () => {
    @ObjectType('Toy', described)
    class Part {
      @Field(() => ID, described) readonly id!: Int64;
    }
    const show = (item: TSchema, type: typeof Part) => {
      @Resolver()
      class ToyOnly {
        @Query(() => type, { nullable: true, ...described })
        toy() {
          return null;
        }
      }
      const schema = {
        operationId: 'listToys',
        summary,
        response: { 200: pageOf(item, 'Toys', 'A page of toys.') },
      };
      const routes = (app: Routes) =>
        void app.get('/toys', { schema }, async () => []);
      return open({ routes, resolvers: [new ToyOnly()] }, [ToyEntity]);
    };
    await expect(
      show(Type.Omit(toySchema, ['note'], { $id: 'Toy' }), ToyType),
    ).rejects.toThrow(
      'Toy.note is absent in the REST schema Toy, and String in the GraphQL type.',
    );
    await expect(show(toySchema, Part)).rejects.toThrow(
      'Toy.name is String! in the REST schema Toy, and absent in the GraphQL type.',
    );
    @ObjectType('Toy', described)
    class Other extends Part {
      @Field(() => Int, described) readonly name!: number;
    }
    await expect(
      show(Type.Pick(toySchema, ['id', 'name'], { $id: 'Toy' }), Other),
    ).rejects.toThrow(
      'Toy.name is String! in the REST schema Toy, and Int! in the GraphQL type.',
    );
    // A column that neither API shows is allowed.
    expect(
      await show(Type.Pick(toySchema, ['id'], { $id: 'Toy' }), Part),
    ).toBeDefined();
  });
});

const forgetful: Module = {
  tag,
  open: () => ({
    routes(app) {
      body({ isGood: Type.Boolean() })(app);
      app.delete(
        '/things',
        { schema: { operationId: 'removeThing', summary, response: seen } },
        async ({ body }) => ({
          seen: JSON.stringify({ body }),
        }),
      );
    },
    resolvers: [new Adding()],
  }),
};

describe('a module that declares', () => {
  const store = storeForAll(
    { CORS_ORIGINS: 'https://shop.example' },
    undefined,
    { more: [forgetful] },
  );
  const add = (more: RestRequest) =>
    rest(store, '/v1/things', {
      method: 'POST',
      json: { isGood: true },
      ...more,
    });
  const remove = (more: RestRequest) =>
    rest(store, '/v1/things', { method: 'DELETE', ...more });
  const query = 'mutation { addThing }';

  test('no scope for a write: both APIs require the scope write of the module, and the contract has the 403', async () => {
    const { key } = await store.keys.issue({ name: 'reader', scope: 'read' });
    const message = 'This needs an API key with the scope "forgetful:write".';
    for (const write of [add, remove]) {
      expect((await write({ key })).json).toEqual({
        code: 'FORBIDDEN',
        status: 403,
        message,
      });
    }
    expect((await add({})).status).toBe(200);
    const { data, errors } = await graphqlText(store, { query }, key);
    expect([data, errors?.[0]]).toMatchObject([
      null,
      { message, extensions: { code: 'FORBIDDEN', status: 403 } },
    ]);
    expect((await graphqlText(store, { query })).data).toEqual({
      addThing: true,
    });
    const { paths } = store.app.swagger() as unknown as {
      paths: Record<string, any>;
    };
    expect(paths['/things'].post.responses).toHaveProperty('403');
  });

  test('no Idempotency-Key: a request with one is refused before the write, so that no client relies on it', async () => {
    const headers = { 'idempotency-key': 'a-name-for-it' };
    const message =
      'This operation takes no Idempotency-Key: a repeated request is carried out again.';
    for (const write of [add, remove]) {
      expect((await write({ headers })).json).toEqual({
        code: 'BAD_USER_INPUT',
        status: 400,
        message,
      });
    }
    for (const text of [
      query,
      'mutation { ...F } fragment F on Mutation { __typename addThing }',
    ]) {
      const { data, errors } = await graphqlText(
        store,
        { query: text },
        store.key,
        headers,
      );
      const error = {
        message,
        extensions: { code: 'BAD_USER_INPUT', status: 400 },
      };
      expect([data, errors?.[0]]).toMatchObject([undefined, error]);
    }
  });

  test('no body for a removal: a request with one is refused, and CORS allows its method', async () => {
    expect((await remove({})).json).toEqual({ seen: '{}' });
    const message = 'This operation takes no body.';
    for (const json of [{ name: 'Rex' }, {}, 0]) {
      expect((await remove({ json })).json).toEqual({
        code: 'BAD_USER_INPUT',
        status: 400,
        message,
      });
    }
    const headers = {
      origin: 'https://shop.example',
      'access-control-request-method': 'DELETE',
    };
    const preflight = await send(store.origin, {
      method: 'OPTIONS',
      path: '/v1/things',
      headers,
    });
    expect(preflight.headers['access-control-allow-methods']).toBe(
      browserMethods('DELETE'),
    );
  });
});

test('a body whose members all have bounds is accepted', async () => {
  const members = {
    name: Type.String({ maxLength: 5 }),
    count: Type.Integer({ minimum: 0, maximum: 9 }),
    isGood: Type.Boolean(),
  };
  const served = await open({ routes: body(members) });
  const { responses } = JSON.parse(served['openapi.json'] ?? '').paths[
    '/things'
  ].post;
  expect(responses[400].content['application/json'].example.message).toBe(
    'name must be a string, not an object; count must be an integer between 0 and 9, not an object; isGood must be true or false, not an object.',
  );
});

test.each<[string, TSchema, unknown, unknown]>([
  [
    'minLength in characters',
    textSchema({ maxLength: 5, minLength: 2, description: 'A dog.' }),
    '🐕🐕',
    '🐕',
  ],
  [
    'pattern',
    textSchema({ maxLength: 5, pattern: '^V', description: 'A word.' }),
    'Vet',
    'vet',
  ],
  [
    'format',
    textSchema({ format: 'email', description: 'An address.' }),
    'a@b.example',
    'a.b.example',
  ],
  ['exclusiveMinimum', Type.Integer({ exclusiveMinimum: 0, maximum: 9 }), 1, 0],
  ['exclusiveMaximum', Type.Integer({ minimum: 0, exclusiveMaximum: 9 }), 8, 9],
  [
    'exclusiveMinimum beside minimum',
    Type.Integer({ minimum: 0, exclusiveMinimum: 5, maximum: 9 }),
    6,
    5,
  ],
  [
    'minimum beside exclusiveMinimum',
    Type.Integer({ minimum: 5, exclusiveMinimum: 0, maximum: 9 }),
    5,
    4,
  ],
  [
    'exclusiveMaximum beside maximum',
    int64Schema({ exclusiveMaximum: 5, maximum: 9 } as never),
    4,
    5,
  ],
  [
    'a minimum between integers',
    Type.Integer({ minimum: 0.5, maximum: 9.5 }),
    1,
    0,
  ],
  [
    'multipleOf',
    int64Schema({ multipleOf: 5 } as never),
    9007199254740995n,
    9007199254740993n,
  ],
  ['minimum of a number', Type.Number({ minimum: 0.5 }), 0.5, 0.4],
  ['multipleOf a number', Type.Number({ multipleOf: 0.5 }), 1.5, 1.4],
  ['multipleOf a tenth', Type.Number({ multipleOf: 0.1 }), 0.3, 0.35],
  ['multipleOf a hundredth', Type.Number({ multipleOf: 0.01 }), 0.07, 0.071],
  [
    'multipleOf a long number',
    Type.Number({ multipleOf: 2 }),
    2 ** 52,
    2 ** 52 + 1,
  ],
])('%s is checked', (_what, schema, right, wrong) => {
  const check = validator(Type.Object({ it: schema }));
  expect(check({ it: right })).toEqual({ it: right });
  expect(() => check({ it: wrong })).toThrow(/^it must be /);
});

test.each([
  ['2030-12-05T00:00:00Z', '2030-12-05T00:00:00.000Z'],
  ['2028-02-29T23:59:59.5+01:30', '2028-02-29T22:29:59.500Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['9999-12-31t23:59:59.999z', '9999-12-31T23:59:59.999Z'],
  ...[
    '2027-02-29T00:00:00Z',
    '2030-01-01T24:00:00Z',
    '9999-12-31T23:59:59.999-23:59',
  ].map((at) => [at, null, 'an existing']),
  ['0000-12-31T00:00:00Z', null, 'an existing'],
  ...['2030-01-01', '2030-01-01T00:00:00', 5, null, { toString: 1 }].map(
    (at) => [at, null],
  ),
])(
  'the moment %j is read as %j (null: refused)',
  (given, taken, why?: unknown) => {
    const check = validator(
      Type.Object({ at: moment({ description: 'When.' }) }),
    );
    if (taken) expect(check({ at: given }).at.toISOString()).toBe(taken);
    else
      expect(() => check({ at: given })).toThrow(
        `at must be ${why ?? 'a'} date and time like 2030-12-05T00:00:00.000Z`,
      );
  },
);

test.each([false, true])(
  'null in a member that may be null is an absent member without a default (lenient: %s)',
  (isLenient) => {
    const note = nullable(textSchema({ description: 'A text.' }));
    const check = validator(
      Type.Object({
        note: Type.Optional(note),
        colour: withDefault(note, 'red'),
      }),
      { isLenient },
    );
    expect([
      check({ note: null, colour: null }),
      check({ colour: null }),
      check({ note: null }),
    ]).toEqual([{ colour: null }, { colour: null }, { colour: 'red' }]);
  },
);

test.each([
  { type: 'integer', minimum: 0, maximum: 9, multipleOf: 0.5 },
  { type: 'integer', minimum: 0, maximum: 9, multipleOf: 0 },
  { type: 'integer', enum: [1, 2] },
])('a member %j has no rule', (it) => {
  expect(() => validator(Type.Object({ it }))).toThrow(
    'No rule checks it {"type":"integer",',
  );
});

const longText = (maxLength: number) => textSchema({ maxLength, ...described });
const column = 'c'.repeat(64);
test.each([
  [{ name: '' }, 'The name of a resource is a word like Toy: "".'],
  [{ path: '/strap' }, 'The path of Strap must name several, not strap.'],
  ...['no way', 'half-way', '2', 'true', ''].map((value) => [
    { members: { size: enumSchema(`Of${value}`, { value }, 'x') } },
    `GraphQL has no name for "${value}" of Of${value}.`,
  ]),
  [{ operations: ['follow'] }, 'Strap has follow, which needs list.'],
  [
    { members: { text: longText(2797) }, mostItems: 1000 },
    'A page could exceed 16 MiB: text have up to 2797 characters in all; at most 2796 are allowed.',
  ],
  [
    {
      members: {
        all: Type.Array(longText(90), { maxItems: 99, ...described }),
      },
      mostItems: 500,
    },
    'A page could exceed 16 MiB: all have up to 8910 characters in all; at most 5592 are allowed.',
  ],
  [{ mostItems: 2000 }, 'A page of straps has at most 1000 items, not 2000.'],
  ...[
    { minimum: 0, maximum: 2 ** 31 },
    { exclusiveMinimum: -(2 ** 31) - 2, maximum: 0 },
  ].map((bounds) => [
    { members: { size: Type.Integer(bounds) } },
    'An integer beyond 32 bits is an int64Schema: {"type":"integer",',
  ]),
  [
    { members: { all: Type.Array(nullable(textSchema(described)), some) } },
    'No column and no GraphQL type follows from {"type":"array",',
  ],
  ...['orders', 'prefixes', 'ranges'].map((order) => [
    { members: { text: longText(1001) }, [order]: ['text'] },
    'No list is sorted by text of straps: a cursor takes 1000 characters of it, not 1001.',
  ]),
  ...['toString', 'valueOf', 'hasOwnProperty', 'id', 'version'].map((name) => [
    { members: { [name]: int64Schema(described) } },
    `${name} cannot be a member of Strap: each item or object has one.`,
  ]),
  ...['size', 'id', 'version', 'createdAt', 'keeper', 'toString'].map(
    (name) => [
      {
        ...{ times: true, owner: 'keeper' },
        computed: { [name]: { schema: int64Schema(described), of: () => 1 } },
      },
      `${name} cannot be a member of Strap: each item or object has one.`,
    ],
  ),
  [
    {
      ...{ operations: ['list', 'follow'], trace: true, follow: 'all' },
      ...{ members: { follow: int64Schema(described) }, filters: ['follow'] },
    },
    'follow has two meanings in the list of straps.',
  ],
] as Array<[object, string]>)('a resource with %j is named', (part, fault) => {
  const strap = {
    name: 'Strap',
    description: '',
    path: '/straps',
    operations: ['list'],
    members: { size: int64Schema(described) },
    ...part,
  };
  expect(() => resource(strap as never)).toThrow(fault);
});

test.each([
  [textSchema({ maxLength: 3, description: '' }), 'toolong'],
  [textSchema(described), null],
  [Type.String({ format: 'date' }), '2026-02-30'],
  [Type.Integer({ minimum: 0, maximum: 9 }), 10],
  [decimalSchema(3, 1, described), '1.25'],
])('a default that its schema refuses is named', (schema: TSchema, value) => {
  const members = { it: withDefault(schema, value as never) };
  expect(() => validator(Type.Object(members))).toThrow(
    /^The default of it must be /,
  );
});

test('a column or a table whose name PostgreSQL would cut is named', () => {
  const id = () => p.bigint('bigint').primary().autoincrement();
  for (const [tableName, fieldName] of [
    ['strap', column],
    [column, 'size'],
    ['strap', 'ü'.repeat(32)],
  ] as const) {
    const properties = { id: id(), size: p.text().fieldName(fieldName) };
    const entity = defineEntity({ name: 'Strap', tableName, properties });
    const orm = new MikroORM({
      entities: [entity],
      clientUrl: 'postgres://127.0.0.1/x',
    } as never);
    expect(() => new Table(orm.getMetadata(entity))).toThrow(
      / has 64 bytes, and PostgreSQL cuts names at 63\.$/,
    );
  }
});

test('a resource names a member or a relation that it lacks', () => {
  const members = { petId: int64Schema({ description: '' }) };
  const strap = {
    name: 'Strap',
    description: '',
    path: '/straps',
    operations: ['list'],
    members,
  } as const;
  const across = { list: 'tags', relation: 'tag' };
  const pet = { by: 'petId', to: () => ToyType, across };
  const filters = ['wings'] as never;
  expect(() => resource({ ...strap, filters })).toThrow(
    'The lists of straps name wings, which is no member.',
  );
  expect(() => resource({ ...strap, relations: { pet } })).toThrow(
    'Strap has no relation tag.',
  );
});

test.each([
  ['^-?(0|[1-9]\\d{0,2})(\\.\\d{1,3}){0,3}$', '10.20.30'],
  ['^-?(0|[1-9]\\d*)\\.\\d{2}$', '2.00'],
  ['^-?(0|[1-9]\\d{0,5})(\\.\\d{1,2})?$', '1.10'],
  ['^-?(0)', '-0'],
])('a text of the pattern %s stays as it is', (pattern, it) => {
  const text = textSchema({ pattern, maxLength: 10, description: '' });
  const wrapped = [text, nullable(text), { ...text }, Type.Array(text, some)];
  for (const schema of wrapped) {
    const value = 'items' in schema ? [it] : it;
    const given = { it: value };
    expect(validator(Type.Object({ it: schema }))(given)).toEqual(given);
  }
});

test('an exact decimal is its shortest text, however its schema is wrapped', () => {
  const price = decimalSchema(8, 2, { description: '' });
  const forms = [price, nullable(price), use(price, ''), { ...price }];
  for (const schema of forms)
    expect(validator(Type.Object({ it: schema }))({ it: '-0.10' })).toEqual({
      it: '-0.1',
    });
});

test('booleans are text in a query, and not in a body', () => {
  const schema = Type.Object({ isGood: Type.Boolean() });
  expect([
    validator(schema, { isLenient: true })({ isGood: 'false' }),
    validator(schema)({ isGood: true }),
  ]).toEqual([{ isGood: false }, { isGood: true }]);
  expect(() => validator(schema)({ isGood: 'true' })).toThrow(
    'isGood must be true or false, not a string.',
  );
});

test('unchecked input does not compile, and neither does a member that the table lacks', () => {
  const strap = {
    name: 'Strap',
    description: '',
    operations: ['list'],
    members: { size: int64Schema(described) },
  } as const;
  const neverCalled = (pets: PetService): unknown => [
    // @ts-expect-error: it is not Validated
    pets.create({ name: 'Rex', categoryId: 1, status: 'available' }),
    // @ts-expect-error: it is not Validated
    pets.list({ limit: 20 }),
    // @ts-expect-error: a pet has no wings
    {} as Records<Pet, { wings: string }>,
    // @ts-expect-error: the member would be required
    nullable(Type.Optional(textSchema({ description: '' }))),
    // @ts-expect-error: the member would be required
    use(Type.Optional(textSchema({ description: '' })), ''),
    // @ts-expect-error: the name comes first
    enumSchema({ open: 'open' }, 'State', 'Its state.'),
    // @ts-expect-error: a path begins with a slash
    resource({ ...strap, path: 'straps' }),
    // @ts-expect-error: lists cannot be filtered by wings
    (records: Records<Pet, NewPet>) => records.list({ limit: 1, wings: 'two' }),
  ];
  expect(neverCalled).toBeInstanceOf(Function);
});
