import { readFile } from 'node:fs/promises';
import { ApolloGateway, RemoteGraphQLDataSource } from '@apollo/gateway';
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';

/**
 * Apollo Gateway. It passes the client's key on to the store, and to no other
 * subgraph.
 */

const gateway = new ApolloGateway({
  supergraphSdl: await readFile(
    process.argv[2] ?? 'supergraph.graphql',
    'utf8',
  ),
  buildService: ({ name, url }) =>
    new RemoteGraphQLDataSource({
      url,
      willSendRequest({ request, context }) {
        if (name === 'animals' && context.authorization)
          request.http.headers.set('authorization', context.authorization);
      },
    }),
});

const { url } = await startStandaloneServer(new ApolloServer({ gateway }), {
  context: async ({ req }) => ({ authorization: req.headers.authorization }),
  listen: { host: '127.0.0.1', port: Number(process.env.PORT ?? 4020) },
});
console.log(`gateway: ${url}`);
