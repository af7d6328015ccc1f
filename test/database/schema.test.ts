import { readdirSync, readFileSync } from 'node:fs';
import { defineEntity, p } from '@mikro-orm/core';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../src/modules.ts';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { createEmptyDatabase, optionsFor } from '../support/database.ts';
import { sql } from '../support/database-access.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();

test('the migrations build exactly the tables that the entities describe', async () => {
  const { schema } = store.database.orm;
  expect(await schema.getUpdateSchemaSQL()).toBe('');
  // The tables of modules, which MikroORM's own command compares (test/deep).
  const snapshot = JSON.parse(
    readFileSync('migrations/.snapshot.json', 'utf8'),
  );
  expect(snapshot.tables).toMatchObject([{ name: 'pet' }]);
});

test('every migration in the folder is listed by its name', () => {
  const files = ['migrations', 'packages/engine/src/migrations']
    .flatMap((folder) => readdirSync(folder))
    .filter((name) => name.endsWith('.ts'));
  expect(modelOf(modules).migrations.map(({ name }) => `${name}.ts`)).toEqual(
    files.sort(),
  );
});

test.each([
  ['had api_key from the migration of pets', 'create_api_key'],
  ['never had pets', 'create_pet_and_api_key'],
])('a store that %s has the tables of its entities', async (_, absent) => {
  const { env, drop } = await createEmptyDatabase();
  const options = await optionsFor(env);
  const model = modelOf(modules);
  const isPresent = ({ name }: { name: string }) => !name.endsWith(absent);
  const earlier = {
    entities: model.entities.filter((one) => one !== PetEntity),
    migrations: model.migrations.filter(isPresent),
  };
  await Database.use(options, earlier, (database) => database.migrate());
  await Database.use(options, model, async (database) => {
    await database.migrate();
    expect(await database.orm.schema.getUpdateSchemaSQL()).toBe('');
  });
  await drop();
});

/** What is altered in the tables, and how the difference is named. */
const alterations: Array<[string, string?]> = [
  [
    'rename category_id to categoryid',
    'pet.category_id does not exist|pet.categoryid must be set, and no entity has it',
  ],
  ['rename to animal', 'pet does not exist'],
  ['alter id type int', 'pet.id is integer, not bigint'],
  ['alter category_id type text', 'pet.category_id is text, not bigint'],
  [
    'alter name type varchar(999)',
    'pet.name is character varying(999), not text',
  ],
  ['alter name type varchar(1000)'],
  ['alter name type varchar'],
  ['alter name drop not null'],
  ['add note text'],
  [`add note text not null default ''`],
  ['add note text not null', 'pet.note must be set, and no entity has it'],
  ['alter category_id type numeric', 'pet.category_id is numeric, not bigint'],
  [
    'drop name, alter category_id type int',
    'pet.category_id is integer, not bigint|pet.name does not exist',
  ],
];
test.each(alterations)(
  'after `alter table pet %s` the start names: %s',
  async (alteration, differences) => {
    const { database } = store;
    await database.assertColumns();
    await whileAltered(`alter table pet ${alteration}`, async () => {
      const failure = await database.assertColumns().catch((error) => error);
      const found = /\n {2}(.*)\n/s.exec(failure?.message)?.[1];
      expect(found?.replaceAll('\n  ', '|')).toBe(differences);
    });
  },
);

test('a column that a trigger sets is none that must be set', async () => {
  const { database } = store;
  await sql(
    database,
    `create function note() returns trigger language plpgsql as 'begin new.note = 1; return new; end'`,
  );
  await whileAltered('alter table pet add note int not null', async () => {
    await sql(
      database,
      'create trigger note before insert on pet for each row execute function note()',
    );
    await database.assertColumns();
  });
  await sql(database, 'drop function note');
});

test('tables that MikroORM creates for any kind of property are those of the entities', async () => {
  const id = () => p.bigint('bigint').primary().autoincrement();
  const Address = defineEntity({
    name: 'Address',
    embeddable: true,
    properties: { street: p.text(), zip: p.string().length(10).nullable() },
  });
  const Tag = defineEntity({ name: 'Tag', properties: { id: id() } });
  const Owner = defineEntity({
    name: 'Owner',
    properties: {
      id: id(),
      home: () => p.embedded(Address),
      work: () => p.embedded(Address).object(),
      tags: () => p.manyToMany(Tag),
      toys: () => p.oneToMany(Toy).mappedBy('owner'),
      city: p.text().formula(`'here'`),
      price: p.decimal().precision(12).scale(3),
      born: p.date(),
      seen: p.datetime(3),
      data: p.json(),
      code: p.uuid(),
      kinds: p.array(),
      size: p.enum(['a', 'b']),
      letter: p.enum(['a', 'b']).nativeEnumName('letter'),
    },
  });
  const Toy = defineEntity({
    name: 'Toy',
    properties: {
      id: id(),
      owner: () => p.manyToOne(Owner),
      twin: () => p.oneToOne(Toy).nullable(),
    },
  });
  const { env, drop } = await createEmptyDatabase();
  const entities = [Address, Tag, Owner, Toy];
  const model = { entities, migrations: [] };
  const options = await optionsFor(env);
  await Database.use(options, model, async (database) => {
    await database.orm.schema.create();
    await sql(database, 'create table mikro_orm_migrations (name text)');
    await database.assertColumns();
    await database.assertReady();
  });
  await drop();
});

async function whileAltered(alteration: string, work: () => Promise<void>) {
  await sql(store.database, 'alter table pet rename to pet_put_aside');
  const copy = 'create table pet (like pet_put_aside including all)';
  await sql(store.database, copy);
  await sql(store.database, alteration);
  await work().finally(async () => {
    await sql(store.database, 'drop table if exists pet, animal');
    await sql(store.database, 'alter table pet_put_aside rename to pet');
  });
}

test('a list by status is served by an index', async () => {
  const indexes = await sql(
    store.database,
    `select indexdef from pg_indexes where tablename = 'pet'`,
  );
  expect(indexes).toContainEqual([expect.stringContaining('(status, id)')]);
});

test.each([
  ['rename column category_id to kind', 'pet.category_id does not exist'],
  [
    'drop column name, drop column status',
    'pet.name does not exist, pet.status does not exist',
  ],
])('a node of an earlier release is not ready after `%s`', (change, lacking) =>
  whileAltered(`alter table pet ${change}`, async () => {
    const { status, text } = await send(store.origin, { path: '/readyz' });
    expect([status, JSON.parse(text).message]).toEqual([
      503,
      `${lacking}: a later release may have migrated the database.`,
    ]);
  }),
);

test('a node of an earlier release is ready beside a column that it does not know', () =>
  whileAltered('alter table pet add colour text', () =>
    store.database.assertReady(),
  ));
