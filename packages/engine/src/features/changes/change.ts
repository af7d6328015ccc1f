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
/** Who sees it, by one of these. */
export const readers = ['audience', 'reader'] as const;
export const byReader = readers.flatMap((one) => [
  [one],
  [one, 'itemId'] as const,
  [one, 'actor'] as const,
]);

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
    actor: nullable(
      textSchema({
        description:
          'Who did it: `key:7`, `subject:ada`, `operator` for a command, `service` for the service itself; null where `changedBy` is hidden.',
      }),
    ),
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
    actor: p.text(),
    version: p.integer(),
    at: p.datetime().defaultRaw('now()'),
    /** Who sees it: the collection, and the owner where it has one. */
    audience: p.text(),
    /** Who sees it, too: by all members that an audience chooses its rows by. */
    reader: p.text().nullable(),
  },
  indexes: [...combinations, ...byReader].map((members) => ({
    properties: [...members, 'id' as const],
    // Most changes have none.
    ...(members[0] === 'reader' && { where: '"reader" is not null' }),
  })),
});
