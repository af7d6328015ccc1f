import type { IncomingHttpHeaders } from 'node:http';
import { graphqlText } from './graphql.ts';
import { rest } from './rest.ts';
import type { Store } from './store.ts';

/** What a client sees of a creation, by either face. */
export interface Created {
  /** The animal, its int64 as digits; or the failure. */
  outcome: Record<string, unknown>;
  /** The header of that name. */
  replayed: string | undefined;
  retryAfter: number | undefined;
}

export interface Creation {
  /** Idempotency-Key, as it is sent; none when undefined. */
  once?: string | undefined;
  /** The API key, unless it is the store's. */
  key?: string | undefined;
}

type Client = Pick<Store, 'origin' | 'key'>;

/** Creates an animal by one of the two faces. */
export interface Creator {
  name: 'REST' | 'GraphQL';
  create(store: Client, newPet: object, creation?: Creation): Promise<Created>;
}

export const mutation = 'mutation ($input: NewPet!) { createPet(input: $input) { id name categoryId status } }';

const byRest: Creator = {
  name: 'REST',
  async create(store, newPet, { once, key } = {}) {
    const request = { method: 'POST', json: newPet, headers: headerOf(once), key };
    const { status, headers, json } = await rest(store, '/v1/pets', request);
    return seen(headers, status === 201 ? { ...json, id: `${json.id}`, categoryId: `${json.categoryId}` } : json);
  },
};

const byGraphQL: Creator = {
  name: 'GraphQL',
  async create(store, newPet, { once, key } = {}) {
    const body = { query: mutation, variables: { input: newPet } };
    const { headers, data, errors: [error] = [] } = await graphqlText(store, body, key, headerOf(once));
    const { code, status } = error?.extensions ?? {};
    return seen(headers, error ? { code, message: error.message, status } : data.createPet);
  },
};

export const creators = [byRest, byGraphQL];

export function headerOf(once: string | undefined): Record<string, string> {
  return once === undefined ? {} : { 'idempotency-key': once };
}

function seen(headers: IncomingHttpHeaders, outcome: Record<string, unknown>): Created {
  const [replayed, retryAfter] = [headers['idempotent-replayed']?.toString(), headers['retry-after']];
  return { outcome, replayed, retryAfter: retryAfter === undefined ? undefined : Number(retryAfter) };
}
