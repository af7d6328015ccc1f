import type { Example } from '@animal-store/engine';
import { parse, print } from 'graphql';

const example = (
  title: string,
  document: string,
  variables?: Record<string, unknown>,
): Example => ({
  title,
  document: `${print(parse(document))}\n`,
  ...(variables && { variables }),
});

/** Example operations, which also work on a new store. */
export const petExamples: Example[] = [
  example(
    'List animals',
    'query Pets { pets(limit: 5) { id name categoryId status } }',
  ),
  example(
    'Page through animals',
    // `after: pageInfo.endCursor` requests the next page.
    `query PageOfPets($first: Int!, $after: String) {
      petsConnection(status: available, first: $first, after: $after) {
        edges { cursor node { id name } }
        pageInfo { hasNextPage endCursor }
      }
    }`,
    { first: 5, after: null },
  ),
  example(
    'Add an animal',
    'mutation AddPet($pet: NewPet!) { createPet(input: $pet) { id name categoryId status } }',
    {
      pet: { name: 'Rex', categoryId: '9007199254740993', status: 'available' },
    },
  ),
  // Without `after`, the subscription delivers only new pets.
  example(
    'Follow what is added',
    'subscription PetAdded { petAdded { id name categoryId status } }',
  ),
  example(
    'Find an animal (deprecated: use the list)',
    'query PetById($id: ID!) { pet(id: $id) { id name status } }',
    {
      id: '1',
    },
  ),
];
