import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import {
  int64Schema,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

const operations = ['list', 'find', 'create', 'change', 'remove'] as const;
const owner = { member: 'clinic', by: 'tenant' } as const;
const name = textSchema({ maxLength: 100, description: 'The name.' });
const other = (description: string) =>
  Type.Optional(nullable(int64Schema({ description })));

const kennel = resource({
  name: 'Kennel',
  description: 'Where dogs live.',
  path: '/kennels',
  operations,
  members: { name },
  owner,
  actor: true,
});
type Kennel = ItemOf<typeof kennel>;
type NewKennel = NewOf<typeof kennel>;

const dog = resource({
  name: 'Dog',
  description: 'A dog.',
  path: '/dogs',
  operations,
  members: {
    name,
    kennelId: int64Schema({ description: 'Where it lives.' }),
    formerId: other('Where it has lived.'),
    motherId: other('Its mother.'),
  },
  audiences: [
    { scope: 'kennels', rows: { practice: 'tenant' } },
    { scope: 'kennels:all', rows: {} },
  ],
});
type Dog = ItemOf<typeof dog>;
type NewDog = NewOf<typeof dog>;

export const KennelEntity = defineEntity({
  name: 'Kennel',
  tableName: 'kennel',
  properties: kennel.columns,
  indexes: [{ properties: ['clinic', 'id'] }],
});
const kennelOf = (column: string) =>
  p.manyToOne(KennelEntity).mapToPk().joinColumn(column);
export const DogEntity = defineEntity({
  name: 'Dog',
  tableName: 'dog',
  properties: {
    ...dog.columns,
    kennelId: () => kennelOf('kennel_id').deleteRule('no action'),
    formerId: () => kennelOf('former_id').nullable(),
    motherId: () =>
      p
        .manyToOne(DogEntity)
        .mapToPk()
        .joinColumn('mother_id')
        .deleteRule('no action')
        .nullable(),
  },
  indexes: [
    { properties: ['kennelId', 'id'] },
    { properties: ['formerId', 'id'] },
    { properties: ['motherId', 'id'] },
  ],
  uniques: [{ properties: ['practice', 'id'] }],
});

const move = operation({
  name: 'moveDog',
  description: 'Writes a dog by hand.',
  path: '/moves',
  input: Type.Object(
    { kennelId: int64Schema({ description: 'Where it lives.' }) },
    { $id: 'Move', description: 'Where a dog lives.' },
  ),
  output: Type.Object(
    { id: int64Schema({ description: 'The dog.' }) },
    { $id: 'Moved', description: 'A dog that has moved.' },
  ),
  creates: [DogEntity],
});

const found = operation({
  name: 'foundKennel',
  description: 'Adds a kennel with a dog for a practice.',
  path: '/foundations',
  input: Type.Object(
    { clinic: name, name, formerId: other('Where its dog has lived.') },
    { $id: 'Foundation', description: 'A new kennel.' },
  ),
  output: Type.Object(kennel.schemas.item.properties, {
    $id: 'FoundKennel',
    description: 'A kennel of a practice.',
  }),
  creates: [KennelEntity, DogEntity],
  scope: 'front',
});

/** What `npm run migration:create` writes of the keys of tenants. */
export const tenantKeys = [
  `create unique index "kennel_clinic_id_index" on "kennel" ("clinic", "id")`,
  `alter table "dog" add constraint "dog_kennel_id_foreign" foreign key ("practice", "kennel_id") references "kennel" ("clinic", "id") on delete no action`,
  `alter table "dog" add constraint "dog_former_id_foreign" foreign key ("practice", "former_id") references "kennel" ("clinic", "id") on delete set null ("former_id")`,
  `alter table "dog" add constraint "dog_mother_id_foreign" foreign key ("practice", "mother_id") references "dog" ("practice", "id") on delete no action`,
];

/** Dogs and kennels of practices, each of which has one table's word for it. */
export const kennelModules: Module[] = [
  {
    tag: { name: 'Kennels', description: 'Dogs of practices.' },
    entities: [KennelEntity, DogEntity],
    migrations: [
      migrationOf('2027_03_05_000000_create_kennels', [
        `create table "kennel" ("id" bigserial primary key, "name" text not null, "clinic" text not null, "changed_by" text not null, "version" int not null default 1)`,
        `create table "dog" ("id" bigserial primary key, "name" text not null, "kennel_id" bigint not null, "former_id" bigint null, "mother_id" bigint null, "practice" text not null, "version" int not null default 1)`,
        `create index "dog_kennel_id_id_index" on "dog" ("kennel_id", "id")`,
        `create index "dog_former_id_id_index" on "dog" ("former_id", "id")`,
        `create index "dog_mother_id_id_index" on "dog" ("mother_id", "id")`,
        `alter table "dog" add constraint "dog_practice_id_unique" unique ("practice", "id")`,
        ...tenantKeys,
      ]),
    ],
    open({ database }) {
      const kennels = new Records<Kennel, NewKennel>(
        database,
        KennelEntity,
        kennel.lists,
      );
      const dogs = new Records<Dog, NewDog>(database, DogEntity, dog.lists);
      return {
        resources: [
          kennel.serve(kennels),
          dog.serve(dogs),
          move.serve(database, async ({ kennelId }, { caller }, em) => {
            const practice = `${caller?.tenant}`;
            const moved = em.create(DogEntity, {
              name: 'moved',
              kennelId,
              practice,
            } as never);
            await em.flush();
            return { id: moved.id };
          }),
          found.serve(database, async ({ clinic, name, formerId }, call) => {
            const scopes = ['kennels:write'];
            const own = call.onBehalfOf({ scopes, tenant: clinic });
            const made = await kennels.create({ name } as NewKennel, own);
            const dog = { name, kennelId: made.id, formerId };
            await dogs.create(dog as NewDog, own);
            return made;
          }),
        ],
      };
    },
  },
  { tag: { name: 'Front', description: 'Reception.' }, open: () => ({}) },
];
