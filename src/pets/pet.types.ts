import {
  argumentsOf,
  connectionOf,
  type Deprecation,
  dayOf,
  inputTypeOf,
  objectTypeOf,
} from '@animal-store/engine';
import { registerEnumType } from 'type-graphql';
import {
  newPetSchema,
  PetStatus,
  petQuerySchema,
  petSchema,
} from './pet.schemas.ts';

/**
 * Fetching one pet by id, in REST and GraphQL. The specification sets the
 * removal, its version 1.0.0 the deprecation.
 */
export const getPetDeprecation: Deprecation = {
  since: new Date('2026-11-20T00:00:00Z'),
  removal: new Date('2030-12-05T00:00:00Z'),
  replacement: '`GET /pets` with the `status` filter',
};

export const getPetRemovalDay = dayOf(getPetDeprecation.removal);

registerEnumType(PetStatus, {
  name: 'PetStatus',
  description: 'Availability of an animal.',
  valuesConfig: {
    available: { description: 'The animal is available.' },
    pending: { description: 'The animal is pending.' },
    sold: { description: 'The animal is sold.' },
  },
});

export const PetType = objectTypeOf(petSchema);
export const PetArguments = argumentsOf(petQuerySchema);
export const PetConnection = connectionOf(PetType, 'Pet', 'animals');
export const NewPetInput = inputTypeOf(newPetSchema);
