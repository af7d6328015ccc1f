import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { parse } from 'graphql';

/**
 * Another subgraph: visits to the vet, which refer to animals of the store by
 * id.
 */

const typeDefs = parse(`
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key"])

  type Query {
    visits: [Visit!]!
  }

  type Visit {
    reason: String!
    pet: Pet
  }

  type Pet @key(fields: "id") {
    id: ID!
    visits: [Visit!]!
  }
`);

const visits = [
  { petId: '1', reason: 'vaccination' },
  { petId: '9007199254740993', reason: 'no such animal' },
];

const resolvers = {
  Query: { visits: () => visits },
  Visit: { pet: ({ petId }) => ({ id: petId }) },
  Pet: { visits: ({ id }) => visits.filter(({ petId }) => petId === id) },
};

const server = new ApolloServer({
  schema: buildSubgraphSchema([{ typeDefs, resolvers }]),
});
const { url } = await startStandaloneServer(server, {
  listen: { host: '127.0.0.1', port: Number(process.env.PORT ?? 4010) },
});
console.log(`visits: ${url}`);
