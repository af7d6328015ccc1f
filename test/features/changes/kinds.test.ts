// runs: embedded, postgres, postgres-12, postgres-18, citus-shards, citus-reference

import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { kinds } from '#engine/validation/kinds.js';
import { type Kind, ofKind } from '#engine/validation/rules.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
  use,
} from '#engine/validation/schemas.js';
import { moneySchema } from '../../modules/money/money.ts';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';

/** A trace shows a value of each kind as an answer of REST does. */

/** A table that is distributed by id has none. */
const isTraced = typeof citusLayout !== 'number';

const description = 'A value.';
/** Of a module, with the codec of the engine's. */
const seconds: Kind = { ...kinds.moment, column: () => p.datetime(0) };
const state = enumSchema('SpecimenState', { dry: 'dry' }, description);
const members = {
  int64: int64Schema({ description }),
  decimal: decimalSchema(30, 10, { description }),
  moment: moment({ description }),
  date: Type.String({ format: 'date', description }),
  uuid: Type.String({ format: 'uuid', description }),
  json: Type.Unknown({ description }),
  texts: Type.Array(textSchema({ description }), { maxItems: 3, description }),
  state: use(state, description),
  integer: Type.Integer({ minimum: -5, maximum: 5, description }),
  number: Type.Number({ description }),
  boolean: Type.Boolean({ description }),
  text: textSchema({ description }),
  money: moneySchema({ description }),
  second: Type.Unsafe<Date>({
    type: 'string',
    format: 'date-time',
    description,
    [ofKind]: seconds,
  }),
};
const specimen = resource({
  name: 'Specimen',
  description: 'A value of each kind.',
  path: '/specimens',
  operations: ['find', 'create', 'change', 'remove'],
  members: { ...members, none: nullable(textSchema({ description })) },
  ...(isTraced && { trace: true }),
});
const SpecimenEntity = defineEntity({
  name: 'Specimen',
  tableName: 'specimen',
  properties: specimen.columns,
});
const specimens: Module = {
  tag: { name: 'Specimens', description: 'Values.' },
  entities: [SpecimenEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_05_01_000000_create_specimen', [
      `create table specimen (id bigserial primary key, int64 bigint not null,
        "decimal" numeric(30, 10) not null, moment timestamptz not null,
        date date not null, uuid uuid not null, json jsonb not null,
        texts text[] not null, state text not null, "integer" int not null,
        number float8 not null, "boolean" boolean not null, text text not null,
        money bigint not null, second timestamptz(0) not null, none text null,
        version int not null default 1)`,
    ]),
  ],
  open({ database }) {
    const records = new Records<
      ItemOf<typeof specimen>,
      NewOf<typeof specimen>
    >(database, SpecimenEntity, specimen.lists);
    return { resources: [specimen.serve(records)] };
  },
};
const store = storeForAll({}, undefined, { more: [specimens] });

const least = {
  int64: -9223372036854775808n,
  decimal: '-0.0000000001',
  moment: '0001-01-01T00:00:00.000Z',
  date: '0001-01-01',
  uuid: '00000000-0000-0000-0000-000000000000',
  json: { n: [9007199254740993n, 0.1, null, ''] },
  texts: ['', 'a,b', '"NULL"'],
  state: 'dry',
  integer: -5,
  number: 5e-324,
  boolean: false,
  text: '',
  money: '-0.05',
  second: '0001-01-01T00:00:01Z',
  none: null,
};
const most = {
  int64: 9223372036854775807n,
  decimal: '99999999999999999999.9999999999',
  moment: '9999-12-31T23:59:59.999Z',
  date: '9999-12-31',
  uuid: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  json: 'text',
  texts: [],
  state: 'dry',
  integer: 5,
  number: 1e20,
  boolean: true,
  text: '2030-12-05',
  money: '9999999999999999.9',
  second: '2030-12-05T12:00:00+01:00',
  none: null,
};

test.each([
  ['least', least, most],
  ['most', most, least],
])('a trace shows the %s values as REST does', async (_, first, next) => {
  const { json: created } = await rest(store, '/v1/specimens', {
    method: 'POST',
    json: first,
  });
  const path = `/v1/specimens/${created.id}`;
  const { json: changed } = await rest(store, path, {
    method: 'PATCH',
    json: { ...next, version: 1 },
  });
  expect((await rest(store, path)).json).toEqual(changed);
  if (!isTraced) return;
  const query = `collection=specimens&itemId=${created.id}&sort=id_desc`;
  const { json: changes } = await rest(store, `/v1/changes?${query}`);
  const { id: _id, version: _version, ...before } = created;
  const { id: _same, version: _next, ...after } = changed;
  expect(changes[1].after).toEqual(before);
  const { state: _kept, none: _null, ...differing } = after;
  expect(changes[0].after).toEqual(differing);
});
