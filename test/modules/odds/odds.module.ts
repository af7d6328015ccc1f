import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

/** A member of each kind, and the orders by them. */

const description = 'Odd.';
const orders = ['score', 'at', 'day', 'price', 'big', 'tone', 'name'] as const;

export const odd = resource({
  name: 'Odd',
  description: 'What may be odd.',
  path: '/odds',
  operations: ['list', 'find', 'create'],
  members: {
    score: Type.Number({ description }),
    at: moment({ description }),
    day: Type.String({ format: 'date', description }),
    leftOn: Type.Optional(
      nullable(Type.String({ format: 'date', description })),
    ),
    price: decimalSchema(12, 4, { description }),
    big: int64Schema({ description }),
    count: Type.Integer({ minimum: 0, maximum: 9, description }),
    isOdd: Type.Boolean({ description }),
    chip: Type.Optional(nullable(Type.String({ format: 'uuid', description }))),
    tone: enumSchema(
      'Tone',
      { red: 'red', Green: 'Green', b_2: 'b_2', a: 'a' },
      description,
    ),
    data: Type.Optional(nullable(Type.Unknown({ description }))),
    marks: Type.Array(textSchema({ maxLength: 20, description }), {
      maxItems: 3,
      description,
    }),
    name: textSchema({ maxLength: 100, description }),
  },
  orders: [...orders],
  prefixes: ['name'],
});
export type Odd = ItemOf<typeof odd>;
export type NewOdd = NewOf<typeof odd>;
export const members =
  'id score at day leftOn price big count isOdd chip tone data marks name';

const keys = orders.map((member) =>
  member === 'name' ? 'lower("name") collate "C"' : `"${member}"`,
);
const statements = keys.map(
  (key, at) => `create index "odd_${at}" on "odd" (${key}, "id")`,
);
export const OddEntity = defineEntity({
  name: 'Odd',
  tableName: 'odd',
  properties: odd.columns,
  indexes: [
    ...orders
      .filter((member) => member !== 'name')
      .map((member) => ({ properties: [member, 'id'] as const })),
    { name: 'odd_6', expression: `${statements.at(-1)}` },
  ] as never,
});
export const odds: Module = {
  tag: { name: 'Odds', description: 'Odd.' },
  entities: [OddEntity],
  migrations: [
    migrationOf('2027_06_01_000000_create_odd', [
      `create table "odd" ("id" bigserial primary key,
        "score" double precision not null, "at" timestamptz not null,
        "day" date not null, "left_on" date null, "price" numeric(12,4) not null,
        "big" bigint not null, "count" int not null, "is_odd" boolean not null,
        "chip" uuid null, "tone" text not null, "data" jsonb null,
        "marks" text[] not null, "name" text not null,
        "version" int not null default 1)`,
      ...statements,
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      odd.serve(new Records<Odd, NewOdd>(database, OddEntity, odd.lists)),
    ],
  }),
};
