import { registerEnumType } from 'type-graphql';
import {
  argumentsOf,
  inputTypeOf,
  objectTypeOf,
} from '#engine/api/graphql/members.js';
import { connectionOf } from '#engine/api/graphql/types.js';
import {
  newToySchema,
  ToyKind,
  toyQuerySchema,
  toySchema,
} from './toy.schemas.ts';

/** Deprecates `getToy` and `Query.toy`. */
export const getToyDeprecation = {
  since: new Date('2026-11-21'),
  removal: new Date('2031-01-01'),
  replacement: '`GET /toys`',
};

registerEnumType(ToyKind, {
  name: 'ToyKind',
  description: 'What the toy is for.',
});

export const ToyType = objectTypeOf(toySchema);
export const ToyArguments = argumentsOf(toyQuerySchema);
export const ToyConnection = connectionOf(ToyType, 'Toy', 'toys');
export const NewToyInput = inputTypeOf(newToySchema);
