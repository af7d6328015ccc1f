import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import { type ItemOf, resource } from '../../api/resources/resource.ts';
import { changeTable } from '../../database/database.ts';
import {
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
  use,
} from '../../validation/schemas.ts';

const ChangeAction = enumSchema(
  'ChangeAction',
  { created: 'created', changed: 'changed', removed: 'removed' },
  'What has happened to an item.',
);

/** Values of members, as in an answer. */
const values = (description: string) => nullable(Type.Unknown({ description }));

const combinations = [
  ['collection'],
  ['collection', 'itemId'],
  ['actor'],
] as const;
/** Those of who sees it. */
export const byAudience = [
  ['audience'],
  ['audience', 'itemId'],
  ['audience', 'actor'],
] as const;

export const change = resource({
  name: 'Change',
  description:
    'A change of an item. Its id is its position, its version that of the item.',
  path: '/changes',
  operations: ['list', 'follow'],
  members: {
    collection: textSchema({ description: 'The collection of the item.' }),
    itemId: int64Schema({ description: 'The id of the item.' }),
    action: use(ChangeAction, 'What has happened.'),
    at: moment({ description: 'When it happened.' }),
    actor: textSchema({
      description:
        'Who did it: `key:7`, `subject:ada`, `operator` for a command, `service` for the service itself.',
    }),
    tenant: nullable(textSchema({ description: 'The tenant of the actor.' })),
    request: nullable(textSchema({ description: 'The id of the request.' })),
    before: values('The members that differ, before; null for a creation.'),
    after: values('The members that differ, after; null for a removal.'),
  },
  filters: ['collection', 'itemId', 'actor'],
  combinations,
});
export type Change = ItemOf<typeof change>;

/** The statements of `records/trace.ts` add its rows. */
export const ChangeEntity = defineEntity({
  name: 'Change',
  tableName: changeTable,
  properties: {
    ...change.columns,
    version: p.integer(),
    at: p.datetime().defaultRaw('now()'),
    /** Who sees it: the collection, and the owner where it has one. */
    audience: p.text(),
  },
  indexes: [...combinations, ...byAudience].map((members) => ({
    properties: [...members, 'id' as const],
  })),
});
