import {
  enumSchema,
  type Input,
  int64Schema,
  itemSchema,
  listQuery,
  textSchema,
  use,
  withDefault,
} from '@animal-store/engine';
import { type Static, Type } from 'typebox';

/** Availability, spelled as in the specification. */
export const PetStatus = {
  available: 'available',
  pending: 'pending',
  sold: 'sold',
} as const;
export type PetStatus = (typeof PetStatus)[keyof typeof PetStatus];

/** `JSON.parse` silently changes numbers that a double cannot represent. */
const exactDigits =
  'An int64, exact to the last digit. A JavaScript number would round it beyond 2^53.';

const status = enumSchema('PetStatus', PetStatus, 'Availability of an animal.');

/** The members that both an item and its input have. */
const members = {
  name: textSchema({
    description:
      "The animal's name. Any text without U+0000 and lone surrogates, of at most 1,000 characters.",
    examples: ['Rex'],
  }),
  categoryId: int64Schema({
    description: `Identifier of the category the animal belongs to. ${exactDigits}`,
    examples: [5],
  }),
};

export const newPetSchema = Type.Object(
  {
    ...members,
    status: withDefault(
      use(status, 'Availability status; `available` when omitted.'),
      PetStatus.available,
    ),
  },
  {
    $id: 'NewPet',
    description: 'An animal to be added.',
    examples: [{ name: 'Rex', categoryId: 5, status: 'available' }],
  },
);

/** The validated input of a new pet. */
export type NewPet = Input<typeof newPetSchema>;

export const petSchema = itemSchema(
  {
    id: int64Schema({
      description: `Unique identifier, assigned by the service on creation. ${exactDigits}`,
      examples: [1],
    }),
    ...members,
    status,
  },
  {
    $id: 'Pet',
    description: 'An animal of the catalogue.',
    examples: [{ id: 1, name: 'Rex', categoryId: 5, status: 'available' }],
  },
);

/** The lists of pets. */
export const petLists = { filters: ['status'] } as const;
export const petQuerySchema = listQuery('animal', petSchema, petLists);

export interface Pet extends Readonly<Static<typeof petSchema>> {}
