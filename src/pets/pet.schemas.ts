import { Type } from 'typebox';
import { type Int64, int64 } from '../int64.ts';
import { referTo } from '../rest/openapi.ts';
import { PetStatus } from './pet.entity.ts';
import { pageLimit } from './pet.rules.ts';

/** `JSON.parse`, and so nearly every client in JavaScript, changes what a double cannot hold without a word. */
const exactDigits =
  "An int64, exact to the last digit. JavaScript's JSON.parse rounds beyond 2^53: read it from the source text, or as a GraphQL ID.";

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
  description: `Identifier of the category the animal belongs to. ${exactDigits}`,
  examples: [5],
});

/** @param maxNameLength in characters */
export function newPetSchema(maxNameLength: number) {
  return Type.Object(
    {
      name: Type.String({ ...name, maxLength: maxNameLength }),
      categoryId,
      status: Type.Optional(
        referTo<PetStatus>('PetStatus#', {
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
}

export const PetSchema = Type.Object(
  {
    id: int64Schema({
      description: `Unique identifier, assigned by the service on creation. ${exactDigits}`,
      examples: [1],
    }),
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
  status: Type.Optional(referTo<PetStatus>('PetStatus#', { description: 'Return only animals with this status.' })),
  after: Type.Optional(
    int64Schema({ description: 'Return only animals after this one: the id of the last animal seen.' }),
  ),
});

export const PetIdParamsSchema = Type.Object({
  petId: int64Schema({ description: `Identifier of the animal, up to ${int64.max}.`, examples: [1] }),
});
