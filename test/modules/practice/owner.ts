import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';

export const owner = resource({
  name: 'Owner',
  description: 'A person who has animals.',
  path: '/owners',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    name: textSchema({ maxLength: 200, description: 'The full name.' }),
    email: textSchema({ maxLength: 200, description: 'The address.' }),
    phone: Type.Optional(
      nullable(textSchema({ maxLength: 50, description: 'The number.' })),
    ),
  },
  example: { name: 'Ada Lovelace', email: 'ada@example.org' },
  filters: ['email'],
  prefixes: ['name'],
});
export type Owner = ItemOf<typeof owner>;
export type NewOwner = NewOf<typeof owner>;

export const OwnerEntity = defineEntity({
  name: 'Owner',
  tableName: 'owner',
  properties: owner.columns,
  indexes: [
    {
      name: 'owner_name_id',
      expression:
        'create index "owner_name_id" on "owner" (lower("name") collate "C", "id")',
    },
  ],
  uniques: [{ properties: ['email'] }],
});
