import { createPet, findPet, listPets } from './pet.statements.js';

/**
 * The schema of the hand-written GraphQL servers. Ids have the type ID, so pg's
 * decimal strings need no conversion.
 */

export const typeDefs = /* GraphQL */ `
  enum PetStatus {
    available
    pending
    sold
  }
  type Pet {
    id: ID!
    name: String!
    categoryId: ID!
    status: PetStatus!
  }
  input NewPet {
    name: String!
    categoryId: ID!
    status: PetStatus = available
  }
  type Query {
    pets(status: PetStatus, limit: Int = 20, after: ID): [Pet!]!
    pet(id: ID!): Pet
  }
  type Mutation {
    createPet(input: NewPet!): Pet!
  }
`;

export const resolvers = {
  Query: {
    pets: (_root, query) => listPets(query),
    pet: (_root, { id }) => findPet(id),
  },
  Mutation: {
    createPet: (_root, { input }) => createPet(input),
  },
};
