import { ApolloServer } from '@apollo/server';
import fastifyApollo from '@as-integrations/fastify';
import Fastify from 'fastify';
import { typeDefs } from './pet.graphql.js';
import { listPets, pool } from './pet.statements.js';

// The upper limit of Apollo Server on Fastify: a resolver that returns the rows
// of the hot page, which it has read once.
const page = await listPets({ limit: 20 });
await pool.end();

const apollo = new ApolloServer({
  typeDefs,
  resolvers: { Query: { pets: () => page } },
});
await apollo.start();

const app = Fastify();
await app.register(fastifyApollo(apollo));
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
