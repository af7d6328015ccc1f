import type { IncomingHttpHeaders } from 'node:http';
import { graphqlText } from './graphql.ts';
import { rest } from './rest.ts';
import type { Store } from './store.ts';

/** The response to a creation, in the same form for both APIs. */
export interface Created {
  /** The animal, its int64 as digits, or the error. */
  outcome: Record<string, unknown>;
  /** The header Idempotent-Replayed. */
  replayed: string | undefined;
  retryAfter: number | undefined;
}

export interface Creation {
  /** The header Idempotency-Key, sent unchanged; no header when undefined. */
  once?: string | undefined;
  /** The API key; by default the store's. */
  key?: string | undefined;
}

type Client = Pick<Store, 'origin' | 'key'>;

/** Creates animals through one of the two APIs. */
export interface Creator {
  name: 'REST' | 'GraphQL';
  create(store: Client, newPet: object, creation?: Creation): Promise<Created>;
}

export const mutation =
  'mutation ($input: NewPet!) { createPet(input: $input) { id name categoryId status } }';

const byRest: Creator = {
  name: 'REST',
  async create(store, newPet, { once, key } = {}) {
    const request = {
      method: 'POST',
      json: newPet,
      headers: headerOf(once),
      key,
    };
    const { status, headers, json } = await rest(store, '/v1/pets', request);
    return result(
      headers,
      status === 201
        ? { ...json, id: `${json.id}`, categoryId: `${json.categoryId}` }
        : json,
    );
  },
};

const byGraphQL: Creator = {
  name: 'GraphQL',
  async create(store, newPet, { once, key } = {}) {
    const body = { query: mutation, variables: { input: newPet } };
    const {
      headers,
      data,
      errors: [error] = [],
    } = await graphqlText(store, body, key, headerOf(once));
    const { code, status } = error?.extensions ?? {};
    return result(
      headers,
      error ? { code, message: error.message, status } : data.createPet,
    );
  },
};

export const creators = [byRest, byGraphQL];

export function headerOf(once: string | undefined): Record<string, string> {
  return once === undefined ? {} : { 'idempotency-key': once };
}

function result(
  headers: IncomingHttpHeaders,
  outcome: Record<string, unknown>,
): Created {
  const [replayed, retryAfter] = [
    headers['idempotent-replayed']?.toString(),
    headers['retry-after'],
  ];
  return {
    outcome,
    replayed,
    retryAfter: retryAfter === undefined ? undefined : Number(retryAfter),
  };
}
