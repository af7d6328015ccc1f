import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { RetryLink } from '@apollo/client/link/retry';
import { relayStylePagination } from '@apollo/client/utilities';

/** Where the service is: behind the page's own address (vite.config.ts), or at VITE_STORE_URL, whose CORS_ORIGINS has us. */
const uri = `${import.meta.env.VITE_STORE_URL ?? ''}/graphql`;

/** A client for one key, with a cache that nobody else's key filled. */
export function storeClient(key: string): ApolloClient {
  const http = new HttpLink({ uri, headers: { authorization: `Bearer ${key}` } });
  return new ApolloClient({
    // Safe for mutations, too: each has an Idempotency-Key.
    link: ApolloLink.from([new RetryLink({ attempts: { max: 3 } }), http]),
    // The pages of each filter are one list.
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { petsConnection: relayStylePagination(['status']) } } },
    }),
  });
}
