import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { resolvers, typeDefs } from './pet.graphql.js';

const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers }),
  logging: false,
  graphiql: false,
  landingPage: false,
});
createServer(yoga).listen(Number(process.env.PORT), '127.0.0.1');
