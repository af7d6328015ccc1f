import { graphqlText } from '../../support/graphql.ts';
import { type RestRequest, rest } from '../../support/rest.ts';
import type { Store } from '../../support/store.ts';

/**
 * The error of a failed request, and when to send it again. All members are
 * undefined when the request succeeded.
 */
export interface Refusal {
  code: string | undefined;
  status: number | undefined;
  message: string | undefined;
  /** Seconds. */
  retryAfter: number | undefined;
}

type Client = Pick<Store, 'origin' | 'key'>;

/** The same three operations on both APIs. */
export const operations = {
  REST: {
    list: (store: Client) => byRest(store, '/v1/pets'),
    find: (store: Client) => byRest(store, '/v1/pets/1'),
    create: (store: Client, name = 'Rex') =>
      byRest(store, '/v1/pets', {
        method: 'POST',
        json: { name, categoryId: 5 },
      }),
  },
  GraphQL: {
    list: (store: Client) => byGraphQL(store, '{ pets { id } }'),
    find: (store: Client) => byGraphQL(store, '{ pet(id: 1) { id } }'),
    create: (store: Client, name = 'Rex') =>
      byGraphQL(
        store,
        `mutation { createPet(input: { name: "${name}", categoryId: 5 }) { id } }`,
      ),
  },
};

async function byRest(
  store: Client,
  path: string,
  request?: RestRequest,
): Promise<Refusal> {
  const { headers, json } = await rest(store, path, request);
  const { code, status, message } = json;
  return {
    code,
    status,
    message,
    retryAfter: headers['retry-after']
      ? Number(headers['retry-after'])
      : undefined,
  };
}

async function byGraphQL(store: Client, query: string): Promise<Refusal> {
  const { headers, errors: [error] = [] } = await graphqlText(store, { query });
  const { code, status, retryAfter } = error?.extensions ?? {};
  // Clients that do not parse the body rely on the header.
  if (headers['retry-after'] !== retryAfter?.toString())
    throw new Error('Header and body differ in Retry-After.');
  return { code, status, message: error?.message, retryAfter };
}
