import { nullable, textSchema } from '@animal-store/engine';
import { resource } from '@animal-store/engine/resources';
import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';

/** Each clinic is a tenant, and sees its own rows only. */
export const ofClinic = { member: 'clinic', by: 'tenant' } as const;

export const customer = resource({
  name: 'Customer',
  description: 'A person who has animals.',
  path: '/customers',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: {
    name: textSchema({ maxLength: 200, description: 'The full name.' }),
    email: textSchema({ maxLength: 200, description: 'The address.' }),
    phone: Type.Optional(
      nullable(textSchema({ maxLength: 50, description: 'The number.' })),
    ),
  },
  owner: ofClinic,
});

export const CustomerEntity = defineEntity({
  name: 'Customer',
  tableName: 'customer',
  properties: customer.columns,
  indexes: [{ properties: ['clinic', 'id'] }],
  uniques: [{ properties: ['clinic', 'email'] }],
});

/** What a person writes for himself. */
export const note = resource({
  name: 'Note',
  description: 'A note, which only its writer sees.',
  path: '/notes',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: { text: textSchema({ description: 'The note.' }) },
  owner: 'writer',
});

export const NoteEntity = defineEntity({
  name: 'Note',
  tableName: 'note',
  properties: note.columns,
  indexes: [{ properties: ['writer', 'id'] }],
});
