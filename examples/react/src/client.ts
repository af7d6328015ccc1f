import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { RetryLink } from '@apollo/client/link/retry';
import { relayStylePagination } from '@apollo/client/utilities';

/** The service's address: the page's own (vite.config.ts), or VITE_STORE_URL, where CORS_ORIGINS must allow this page. */
const uri = `${import.meta.env.VITE_STORE_URL ?? ''}/graphql`;

/** Creates a client with a separate cache for one key. */
export function storeClient(key: string): ApolloClient {
  const http = new HttpLink({ uri, headers: { authorization: `Bearer ${key}` } });
  return new ApolloClient({
    // Safe for mutations, too: each has an Idempotency-Key.
    link: ApolloLink.from([new RetryLink({ attempts: { max: 3 } }), http]),
    // Joins the pages of each filter to one list.
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { petsConnection: relayStylePagination(['status']) } } },
    }),
  });
}
