import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { success } from '#engine/api/rest/documented-responses.js';
import { sendPage } from '#engine/api/rest/responses.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import { Table } from '#engine/records/rows/table.js';
import type { Int64 } from '#engine/validation/int64.js';
import { pageQueryMembers } from '#engine/validation/page.js';
import {
  enumSchema,
  int64Schema,
  moment,
  nullable,
} from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { storeForAll } from '../support/store.ts';
import {
  type Crate,
  CrateEntity,
  createCrate,
  Size,
} from './crates/crate.entity.ts';

/**
 * Columns of every type that `Records` supports, with names that SQL must
 * quote.
 */

/** Leads to its own table. */
const BranchEntity = defineEntity({
  name: 'Branch',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    parentId: () =>
      p.manyToOne(BranchEntity).mapToPk().joinColumn('parent_id').nullable(),
  },
  indexes: [{ properties: ['parentId', 'id'] }],
});
interface Branch {
  readonly id: Int64;
  readonly parentId: Int64 | null;
}

type NewCrate = Partial<Omit<Crate, 'id'>>;

const crateType = Type.Object(
  {
    id: int64Schema({ description: 'Its id.' }),
    place: Type.String(),
    parent: nullable(int64Schema({ description: 'The crate around it.' })),
    size: nullable(enumSchema('Size', Size, 'How large it is.')),
    seenAt: moment({ description: 'When it was seen.' }),
  },
  { $id: 'Crate' },
);
const ends = {
  since: new Date('2026-11-20'),
  removal: new Date('2030-12-05'),
  replacement: '`GET /crates`',
};
const crates: Module = {
  tag: { name: 'Crates', description: 'Crates.' },
  entities: [CrateEntity, BranchEntity],
  migrations: [
    migrationOf('2027_01_01_000000_create_crate', [
      createCrate,
      'create table branch (id bigserial primary key, parent_id bigint)',
    ]),
  ],
  open: ({ database }) => ({
    routes(app) {
      const records = new Records<Crate, NewCrate>(database, CrateEntity);
      const response = {
        200: success(Type.Array(crateType, { $id: 'Crates' }), 'All crates.'),
      };
      app.get(
        '/crates',
        {
          schema: {
            operationId: 'listCrates',
            summary: 'List crates',
            response,
          },
        },
        async ({ query, call }) => {
          expect(query).toEqual({});
          return (await records.list({ limit: 100 } as never, call)).items;
        },
      );
      const querystring = Type.Object(pageQueryMembers('crate'));
      const members = {
        id: int64Schema({ description: 'Its id.' }),
        place: Type.String(),
      };
      const places = Type.Array(Type.Object(members, { $id: 'Place' }), {
        $id: 'Places',
      });
      const listPlaces = {
        querystring,
        response: { 200: success(places, 'Where the crates are.') },
      };
      const config = {
        deprecation: {
          ...ends,
          operation: 'oldCrates',
          successor: '/v1/crates',
        },
      };
      for (const [path, options] of [
        ['/places', { schema: listPlaces }],
        ['/old-crates', { schema: { querystring, response }, config }],
      ] as const) {
        app.get(path, options, async (request, reply) =>
          sendPage(
            request,
            reply,
            await records.list(request.query, request.call),
          ),
        );
      }
    },
  }),
};

const store = storeForAll({}, undefined, { more: [crates] });
beforeEach(() => sql(store.database, 'truncate "Order" restart identity'));

const seenAt = new Date('2026-11-21T12:34:56.789Z');
const least = { place: 'here', isOpen: true, seenAt };
const most = {
  place: 'a,b,"c"\\',
  order: -7,
  parent: 9223372036854775807n,
  isOpen: false,
  size: 'large',
  weight: 1.5e300,
  seenAt: new Date('1800-02-28T23:59:59.001Z'),
  quote: '',
  level: 'premium',
  addedAt: new Date('2020-01-01T00:00:00.000Z'),
} as const;
const nulls = {
  order: null,
  parent: null,
  size: null,
  weight: null,
  quote: null,
};

const records = (...filters: Array<keyof Crate & string>) =>
  new Records<Crate, NewCrate>(store.database, CrateEntity, { filters });

test('every type of value is read as it was written, alone and in batches', async () => {
  const all = records();
  const [first, second] = await Promise.all([
    all.create(least),
    all.create(most),
  ]);
  // The readiness check finds a table with a capital letter in its name.
  await store.database.assertReady();
  expect(first).toEqual({
    id: 1,
    ...least,
    ...nulls,
    level: 'basic',
    addedAt: expect.any(Date),
  });
  expect(second).toEqual({ id: 2, ...most });
  expect(await Promise.all([all.find(1), all.find(2), all.find(3)])).toEqual([
    first,
    second,
    null,
  ]);
  expect((await all.list({ limit: 100 } as never)).items).toEqual([
    first,
    second,
  ]);
  const many = await Promise.all(
    Array.from({ length: 60 }, (_, at) => all.create(at % 2 ? least : most)),
  );
  expect((await all.list({ limit: 100, after: 2 } as never)).items).toEqual(
    many,
  );
});

test.each<[keyof Crate & string, unknown, unknown]>([
  [
    'seenAt',
    new Date('2026-01-01T00:00:00.100Z'),
    new Date('2026-01-01T00:00:00.900Z'),
  ],
  ['isOpen', true, false],
  ['parent', 9223372036854775806n, 9223372036854775807n],
  ['order', 1, 2],
  ['place', 'x', 'x='],
])(
  'batched lists with the filter %s get the rows of their own filter',
  async (member, one, other) => {
    const by = records(member);
    for (const value of [one, other, other])
      await by.create({ ...least, [member]: value });
    const pages = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        by.list({ limit: 10, [member]: at % 2 ? one : other } as never),
      ),
    );
    pages.forEach(({ items }, at) => {
      const expected =
        at % 2
          ? [{ id: 1, [member]: one }]
          : [2, 3].map((id) => ({ id, [member]: other }));
      expect(items).toMatchObject(expected);
    });
  },
);

test('followers with different filters have different lists, also when their values look alike', async () => {
  const by = records('seenAt');
  const live = new LiveList(by);
  const [one, other] = [
    new Date('2026-01-01T00:00:00.100Z'),
    new Date('2026-01-01T00:00:00.900Z'),
  ];
  for (const seenAt of [one, other]) await by.create({ ...least, seenAt });
  const followers = [one, other].map((seenAt) =>
    live.subscribe({ after: 0, seenAt } as never),
  );
  for (const follower of followers) await follower.next();
  const additions = await Promise.all(
    followers.map((follower) => follower.next()),
  );
  expect(
    additions.map(({ value }) => value?.items.map(({ seenAt }) => seenAt)),
  ).toEqual([[one], [other]]);
  for (const follower of followers) await follower.return();
});

test('REST writes null and int64; two routes with different schemas over one list do not share its JSON', async () => {
  for (const crate of [least, most]) await records().create(crate);
  const crates = [
    '{"id":1,"place":"here","parent":null,"size":null,"seenAt":"2026-11-21T12:34:56.789Z"}',
    '{"id":2,"place":"a,b,\\"c\\"\\\\","parent":9223372036854775807,"size":"large","seenAt":"1800-02-28T23:59:59.001Z"}',
  ];
  // A route without a query schema gets no query.
  const { status, text } = await rest(store, '/v1/crates?x=1&__proto__=2');
  expect([status, text]).toEqual([200, `[${crates}]`]);
  const paths = Array.from({ length: 40 }, (_, at) =>
    at % 2 ? '/v1/places?limit=1' : '/v1/old-crates?limit=1',
  );
  const responses = await Promise.all(paths.map((path) => rest(store, path)));
  const place = '[{"id":1,"place":"here"}]';
  expect(responses.map(({ text }) => text)).toEqual(
    paths.map((_, at) => (at % 2 ? place : `[${crates[0]}]`)),
  );
  // A list that is deprecated still links to its next page.
  const next = `<${store.origin}/v1/old-crates?limit=1&after=1>; rel="next"`;
  expect(responses[0]?.headers.link).toBe(
    `${next}, <${store.origin}/v1/crates>; rel="successor-version"`,
  );
  const document = store.app.swagger() as unknown as {
    components: { schemas: { Crate: { properties: object } } };
  };
  expect(document.components.schemas.Crate.properties).toMatchObject({
    parent: { type: ['integer', 'null'], format: 'int64' },
    size: { anyOf: [{ $ref: '#/components/schemas/Size' }, { type: 'null' }] },
  });
});

test.each<[string, object, string?]>([
  ['varchar', { it: p.string() }, 'varchar(255)'],
  ['whole seconds', { it: p.datetime(0) }, 'timestamptz(0)'],
  ['a decimal as a double', { it: p.decimal('number') }, 'numeric(10,0)'],
  ['an int64 as text', { it: p.bigint('string') }, 'bigint'],
  [
    'an array of integers',
    { it: p.array(Number).columnType('int[]') },
    'int[]',
  ],
  ['a version of time', { it: p.datetime().version() }],
  ['a property without a column', { it: p.text().persist(false) }, 'text'],
  [
    'a relation that is no key',
    { it: () => p.manyToOne(CrateEntity) },
    'bigint',
  ],
])(
  'the service does not start with a column that could change a value: %s',
  (what, members, type) => {
    const entity = defineEntity({
      name: `Odd ${what}`,
      tableName: 'odd',
      properties: {
        id: p.bigint('bigint').primary().autoincrement(),
        ...members,
      },
    });
    const orm = new MikroORM({
      entities: [entity, CrateEntity],
      dbName: 'none',
    });
    const open = () => new Table(orm.getMetadata(`Odd ${what}` as never));
    expect(open).toThrow(
      /^odd\.it(_id)? has an unsupported type: .+\. Supported are p\.text\(\), .+/,
    );
    if (type) expect(open).toThrow(`unsupported type: ${type}. Supported are`);
  },
);

test('a relation may lead to its own table', async () => {
  const branches = new Records<Branch, Pick<Branch, 'parentId'>>(
    store.database,
    BranchEntity,
    {
      filters: ['parentId'],
    },
  );
  const root = await branches.create({ parentId: null });
  const leaf = await branches.create({ parentId: root.id });
  expect(
    await branches.list({ limit: 2, parentId: root.id } as never),
  ).toMatchObject({ items: [leaf] });
});

(citusLayout ? test.skip : test).each([
  ['"order"', 'order'],
  ['place, "order"', 'place and order'],
  ['lower(place)', 'value'],
  ['lower(place), "order"', 'value'],
])(
  'a second row with the key of a unique index on (%s) is a conflict',
  async (key, named) => {
    await sql(store.database, `create unique index once on "Order" (${key})`);
    const all = records();
    await all.create({ ...least, order: 7 });
    const again = all.create({ ...least, order: 7 });
    await expect(again).rejects.toMatchObject({
      code: 'CONFLICT',
      message: `Another one has this ${named}.`,
    });
    await sql(store.database, 'drop index once');
  },
);
