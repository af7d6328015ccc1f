import { Type } from 'typebox';
import { type Int64, int64 } from '../int64.ts';
import { PetStatus } from './pet.entity.ts';
import { pageLimit } from './pet.rules.ts';

/** int64 on the wire: a JSON integer, exact to the last digit. */
function int64Schema(options: { description: string; examples?: number[] }) {
  return Type.Unsafe<Int64>({ type: 'integer', format: 'int64', ...options });
}

export const PetStatusSchema = Type.Unsafe<PetStatus>({
  $id: 'PetStatus',
  type: 'string',
  enum: Object.values(PetStatus),
  description: 'Availability of an animal.',
});

const name = Type.String({
  description: "The animal's name. Any text without U+0000 and lone surrogates.",
  examples: ['Rex'],
});
const categoryId = int64Schema({
  description: 'Identifier of the category the animal belongs to.',
  examples: [5],
});

export const NewPetSchema = Type.Object(
  {
    name,
    categoryId,
    status: Type.Optional(
      Type.Unsafe<PetStatus>({
        type: 'string',
        enum: Object.values(PetStatus),
        default: PetStatus.available,
        description: 'Availability status; `available` when omitted.',
      }),
    ),
  },
  {
    $id: 'NewPet',
    description: 'An animal to be added. Members that are not listed are ignored.',
    examples: [{ name: 'Rex', categoryId: 5, status: 'available' }],
  },
);

export const PetSchema = Type.Object(
  {
    id: int64Schema({ description: 'Unique identifier, assigned by the service on creation.', examples: [1] }),
    name,
    categoryId,
    status: Type.Ref('PetStatus#'),
  },
  {
    $id: 'Pet',
    description: 'An animal of the catalogue.',
    examples: [{ id: 1, name: 'Rex', categoryId: 5, status: 'available' }],
  },
);

export const PetsSchema = Type.Array(Type.Ref('Pet#'), {
  $id: 'Pets',
  description: 'Animals, ascending by id.',
  maxItems: pageLimit.max,
});

export const ListPetsQuerySchema = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: pageLimit.min,
      maximum: pageLimit.max,
      default: pageLimit.default,
      description: 'Maximum number of animals to return.',
    }),
  ),
  status: Type.Optional(
    Type.Unsafe<PetStatus>({
      type: 'string',
      enum: Object.values(PetStatus),
      description: 'Return only animals with this status.',
    }),
  ),
  after: Type.Optional(
    int64Schema({ description: 'Return only animals after this one: the id of the last animal seen.' }),
  ),
});

export const PetIdParamsSchema = Type.Object({
  petId: int64Schema({ description: `Identifier of the animal, up to ${int64.max}.`, examples: [1] }),
});
