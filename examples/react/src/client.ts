import {
  ApolloClient,
  ApolloLink,
  HttpLink,
  InMemoryCache,
} from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { RetryLink } from '@apollo/client/link/retry';
import { relayStylePagination } from '@apollo/client/utilities';
import { renew, token } from './login.ts';
import { renewal } from './renewal.ts';

/**
 * The service's address: the page's own (vite.config.ts), or VITE_STORE_URL,
 * where CORS_ORIGINS must allow this page.
 */
const uri = `${import.meta.env.VITE_STORE_URL ?? ''}/graphql`;

/**
 * Creates a client with a separate cache for one key; without a key, for the
 * user who is logged in.
 */
export function storeClient(key?: string): ApolloClient {
  const credentials = new SetContextLink(async ({ headers }) => ({
    headers: { ...headers, authorization: `Bearer ${key ?? (await token())}` },
  }));
  // Safe for mutations, too: each has an Idempotency-Key.
  const links = [
    new RetryLink({ attempts: { max: 3 } }),
    credentials,
    new HttpLink({ uri }),
  ];
  return new ApolloClient({
    link: ApolloLink.from(key ? links : [renewal(renew), ...links]),
    // Joins the pages of each filter to one list.
    cache: new InMemoryCache({
      typePolicies: {
        Query: { fields: { petsConnection: relayStylePagination(['status']) } },
      },
    }),
  });
}
