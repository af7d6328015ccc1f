import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

/** Members that are a UUID, a day, any JSON, or texts. */

export const passport = resource({
  name: 'Passport',
  description: 'The papers of an animal.',
  path: '/passports',
  operations: ['list', 'find', 'create', 'change', 'follow'],
  members: {
    chip: Type.String({ format: 'uuid', description: 'Its chip.' }),
    bornOn: Type.Optional(
      nullable(Type.String({ format: 'date', description: 'Its birthday.' })),
    ),
    issuedOn: Type.String({
      format: 'date',
      description: 'When it was issued.',
    }),
    data: Type.Optional(nullable(Type.Unknown({ description: 'Anything.' }))),
    marks: Type.Array(textSchema({ maxLength: 20, description: 'A mark.' }), {
      maxItems: 3,
      description: 'What it looks like.',
    }),
  },
  filters: ['chip'],
  in: ['chip'],
  nulls: ['bornOn'],
  ranges: ['issuedOn'],
  combinations: [['chip'], ['bornOn']],
});
export type Passport = ItemOf<typeof passport>;
export type NewPassport = NewOf<typeof passport>;

export const PassportEntity = defineEntity({
  name: 'Passport',
  tableName: 'passport',
  properties: passport.columns,
  indexes: [
    { properties: ['bornOn', 'id'] },
    { properties: ['issuedOn', 'id'] },
    { properties: ['bornOn', 'issuedOn', 'id'] },
  ],
  uniques: [{ properties: ['chip'] }],
});
export const passports: Module = {
  tag: { name: 'Passports', description: 'Papers.' },
  entities: [PassportEntity],
  migrations: [
    migrationOf('2027_05_01_000000_create_passport', [
      `create table "passport" ("id" bigserial primary key, "chip" uuid not null unique,
        "born_on" date null, "issued_on" date not null, "data" jsonb null,
        "marks" text[] not null, "version" int not null default 1)`,
      'create index "passport_1" on "passport" ("born_on", "id")',
      'create index "passport_2" on "passport" ("issued_on", "id")',
      'create index "passport_3" on "passport" ("born_on", "issued_on", "id")',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      passport.serve(
        new Records<Passport, NewPassport>(
          database,
          PassportEntity,
          passport.lists,
        ),
      ),
    ],
  }),
};

export const chip = '0190163d-8694-739b-aea5-966c26f8ad91';
export const plain = { chip, issuedOn: '2026-11-28', marks: ['white'] };
export const members = 'id chip bornOn issuedOn data marks version';

export const nested = (depth: number, leaf: unknown): unknown =>
  depth === 0 ? leaf : { a: [nested(depth - 2, leaf)] };
export const others = (at: number) => chip.replace(/..$/, `${at}`);
export const chipOf = (at: number) => others(10 + at);
export const spare = (at: number) => others(60 + at);
/** What is given, and what is read. */
export const cases: Array<[what: string, given: object, read?: object]> = [
  ['nothing special', {}],
  [
    'a UUID in upper case',
    { chip: others(98).toUpperCase() },
    { chip: others(98) },
  ],
  ['a UUID of zeros', { chip: '00000000-0000-0000-0000-000000000000' }],
  ['a leap day', { bornOn: '2024-02-29' }],
  ['the first day', { bornOn: '0001-01-01', issuedOn: '0001-01-01' }],
  ['the last day', { bornOn: '9999-12-31', issuedOn: '9999-12-31' }],
  ['days that summer time lacks', { bornOn: '2018-11-04' }],
  ['no text', { marks: [] }],
  ['the most texts', { marks: ['x'.repeat(20), '', '\u{1f415}'.repeat(20)] }],
  ['texts that need quotes', { marks: ['a,b', '"', '\\'] }],
  ['texts that look like others', { marks: ['NULL', '{}', " '"] }],
  ['texts with spaces', { marks: [' ', '\n\t', '\u2028'] }],
  ['a text of JSON', { data: 'text' }],
  ['a text that is JSON', { data: '{"a":1}' }],
  ['the empty text of JSON', { data: '' }],
  ['true', { data: true }],
  ['zero', { data: 0 }],
  ['an int64', { data: 9007199254740993n }],
  ['the greatest int64', { data: { n: [9223372036854775807n] } }],
  ['the least int64', { data: [-9223372036854775808n] }],
  ['a fraction', { data: [0.1, -1.5e-7, 123456.789] }],
  ['the least fractions', { data: Array.from({ length: 24 }, () => 5e-324) }],
  ['nulls', { data: { a: null, b: [null] } }],
  ['an empty object', { data: {} }],
  ['an empty array', { data: [] }],
  ['an odd name', { data: { '': 1, 'a"b\\': 2, constructor: 3, ü: 4 } }],
  ['a version', { data: { id: 5, version: 7, rawJSON: '1' } }],
  ['the most levels', { data: nested(32, 1) }],
  ['a long text', { data: 'x'.repeat(7998) }],
  ['many values', { data: Array.from({ length: 3000 }, () => 1) }],
];
export const inputs = cases.map(([, given], at) => ({
  ...plain,
  chip: chipOf(at),
  ...given,
}));
export const nothing = { bornOn: null, data: null, version: 1 };
/** The items that follow, with their ids apart. */
export const expected = cases.map(([, given, read = given], at) => ({
  ...nothing,
  ...plain,
  chip: chipOf(at),
  ...read,
}));
