import type { Example } from '../api/pages/explorers.ts';

/** Operations that work on a new store, too. */
export const petExamples: Example[] = [
  {
    title: 'List animals',
    document: `query Pets {
  pets(limit: 5) {
    id
    name
    categoryId
    status
  }
}
`,
  },
  {
    title: 'Page through animals',
    // With `after: pageInfo.endCursor` of one page comes the next.
    document: `query PageOfPets($first: Int!, $after: String) {
  petsConnection(status: available, first: $first, after: $after) {
    edges {
      cursor
      node {
        id
        name
      }
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}
`,
    variables: { first: 5, after: null },
  },
  {
    title: 'Add an animal',
    document: `mutation AddPet($pet: NewPet!) {
  createPet(input: $pet) {
    id
    name
    categoryId
    status
  }
}
`,
    variables: { pet: { name: 'Rex', categoryId: '9007199254740993', status: 'available' } },
  },
  {
    title: 'Follow what is added',
    // Without `after`, only what is added from now on.
    document: `subscription PetAdded {
  petAdded(after: "0") {
    id
    name
    categoryId
    status
  }
}
`,
  },
  {
    title: 'Find an animal (deprecated: use the list)',
    document: `query PetById($id: ID!) {
  pet(id: $id) {
    id
    name
    status
  }
}
`,
    variables: { id: '1' },
  },
];
