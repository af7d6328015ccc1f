import { Type } from 'typebox';
import { pageQueryMembers } from '../../validation/page.ts';
import { enumSchema, int64Schema, textSchema, use, withDefault } from '../../validation/schemas.ts';
import { type Input } from '../../validation/validator.ts';
import { PetStatus } from './pet.entity.ts';

/** `JSON.parse` silently changes numbers that a double cannot represent. */
const exactDigits =
  "An int64, exact to the last digit. JavaScript's JSON.parse rounds beyond 2^53: read it from the source text, or as a GraphQL ID.";

const status = enumSchema('PetStatus', PetStatus, 'Availability of an animal.');
const name = { description: "The animal's name. Any text without U+0000 and lone surrogates.", examples: ['Rex'] };
const categoryId = int64Schema({
  description: `Identifier of the category the animal belongs to. ${exactDigits}`,
  examples: [5],
});

export const newPetSchema = Type.Object(
  {
    name: textSchema(name),
    categoryId,
    status: withDefault(use(status, 'Availability status; `available` when omitted.'), PetStatus.available),
  },
  {
    $id: 'NewPet',
    description: 'An animal to be added. Members that are not listed are ignored.',
    examples: [{ name: 'Rex', categoryId: 5, status: 'available' }],
  },
);

/** The validated input of a new pet. */
export type NewPet = Input<typeof newPetSchema>;

export const petQuerySchema = Type.Object({
  status: Type.Optional(use(status, 'Return only animals with this status.')),
  ...pageQueryMembers('animal'),
});

/** The query parameters of a list of pets. */
export type PetQuery = Input<typeof petQuerySchema>;

export const petSchema = Type.Object(
  {
    id: int64Schema({
      description: `Unique identifier, assigned by the service on creation. ${exactDigits}`,
      examples: [1],
    }),
    name: Type.String(name),
    categoryId,
    status,
  },
  {
    $id: 'Pet',
    description: 'An animal of the catalogue.',
    examples: [{ id: 1, name: 'Rex', categoryId: 5, status: 'available' }],
  },
);
