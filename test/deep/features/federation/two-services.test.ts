import { composeServices } from '@apollo/composition';
import { defineEntity } from '@mikro-orm/core';
import { buildSchema, parse } from 'graphql';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { graphqlText } from '../../../support/graphql.ts';
import { expect, test } from '../../../support/jest.ts';
import { migrationOf } from '../../../support/migrations.ts';
import { type Store, storeForAll } from '../../../support/store.ts';

/** Two services of the engine, with the same features, as one supergraph. */

const operations = ['list', 'find', 'create', 'follow'] as const;

function moduleOf(name: string): Module {
  const one = resource({
    name,
    description: 'One.',
    path: `/${name.toLowerCase()}s`,
    operations: [...operations],
    members: { name: textSchema({ description: 'Its name.' }) },
    trace: true,
  });
  const tableName = name.toLowerCase();
  const { columns: properties } = one;
  const entity = defineEntity({ name, tableName, properties });
  return {
    tag: { name: `${name}s`, description: 'All.' },
    entities: [entity],
    keepsChanges: true,
    migrations: [
      migrationOf('2027_05_01_000000_create', [
        `create table ${tableName} (id bigserial primary key,
          name text not null, version int not null default 1)`,
      ]),
    ],
    open({ database }) {
      const records = new Records<never, never>(database, entity, one.lists);
      return { resources: [one.serve(records as never)] };
    },
  };
}

const env = { GRAPHQL_FEDERATION: 'true', WEBHOOKS: 'true' };
const inn = storeForAll(env, undefined, { own: [moduleOf('Room')] });
const bank = storeForAll(env, undefined, { own: [moduleOf('Loan')] });

/** Its clients have fields that the composition does not see. */
async function subgraphOf(name: string, store: Store) {
  const query =
    '{ _service { sdl } changes { id } webhooks { id } __type(name: "_Entity") { possibleTypes { name } } }';
  const { data, errors } = await graphqlText(store, { query });
  expect(errors).toBeUndefined();
  expect(data.__type.possibleTypes).toHaveLength(1);
  const url = `${store.origin}/graphql`;
  return { name, url, typeDefs: parse(data._service.sdl) };
}

const fieldsOf = (type: any) => Object.keys(type.getFields()).toSorted();

test('a supergraph has what both services serve, and not what each has for itself', async () => {
  const { supergraphSdl = '', errors } = composeServices([
    await subgraphOf('inn', inn),
    await subgraphOf('bank', bank),
  ]);
  expect(errors).toBeUndefined();
  const supergraph = buildSchema(supergraphSdl, { assumeValidSDL: true });
  const roots = [
    supergraph.getQueryType(),
    supergraph.getMutationType(),
    supergraph.getSubscriptionType(),
  ];
  expect(roots.map(fieldsOf)).toEqual([
    ['loan', 'loans', 'loansConnection', 'room', 'rooms', 'roomsConnection'],
    ['createLoan', 'createRoom'],
    ['loanAdded', 'roomAdded'],
  ]);
  expect(supergraphSdl).not.toMatch(/^(?:type|enum|input) (?:Change|Webhook)/m);
});
