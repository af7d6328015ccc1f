import type { IncomingHttpHeaders } from 'node:http';
import {
  CreatePetDocument,
  PetDocument,
  PetsDocument,
} from './generated/graphql.ts';
import { type GraphQLResult, graphql, graphqlText } from './graphql.ts';
import { type RestResponse, rest } from './rest.ts';
import type { Store } from './store.ts';

/** An animal as either API shows it, its int64 as digits. */
export interface SeenPet {
  id: string;
  name: string;
  categoryId: string;
  status: string;
}

/**
 * The result of a call: data, or an error in the vocabulary that both APIs
 * share.
 */
export type Outcome<Data> =
  | { data: Data }
  | { code: string; status: number; message: string };

/**
 * One of the two APIs of the store. Inputs are not typed, because the service
 * must refuse invalid ones.
 */
export interface Api {
  name: 'REST' | 'GraphQL';
  list(
    store: Store,
    query: Record<string, unknown>,
    key?: string | null,
  ): Promise<Outcome<SeenPet[]>>;
  create(
    store: Store,
    newPet: unknown,
    key?: string | null,
  ): Promise<Outcome<SeenPet>>;
  find(
    store: Store,
    id: unknown,
    key?: string | null,
  ): Promise<Outcome<SeenPet | null>>;
}

const restApi: Api = {
  name: 'REST',
  list: async (store, query, key) => {
    const search = Object.entries(query).map(
      ([name, value]) => `${name}=${encodeURIComponent(`${value}`)}`,
    );
    return fromRest(
      await rest(store, `/v1/pets?${search.join('&')}`, { key }),
      (pets: any[]) => pets.map(seen),
    );
  },
  create: async (store, newPet, key) =>
    fromRest(
      await rest(store, '/v1/pets', { method: 'POST', json: newPet, key }),
      seen,
    ),
  find: async (store, id, key) => {
    const response = await rest(
      store,
      `/v1/pets/${encodeURIComponent(`${id}`)}`,
      { key },
    );
    // REST has 404 for an animal that does not exist, and GraphQL null.
    return response.status === 404 ? { data: null } : fromRest(response, seen);
  },
};

const graphqlApi: Api = {
  name: 'GraphQL',
  list: async (store, query, key) =>
    fromGraphQL(await graphql(store, PetsDocument, query, key), ({ pets }) =>
      pets.map(seen),
    ),
  create: async (store, newPet, key) =>
    fromGraphQL(
      await graphql(store, CreatePetDocument, { input: newPet as never }, key),
      ({ createPet }) => seen(createPet),
    ),
  find: async (store, id, key) =>
    fromGraphQL(
      await graphql(store, PetDocument, { id: id as string }, key),
      ({ pet }) => pet && seen(pet),
    ),
};

/** Both APIs, for `describe.each`. */
export const apis = [restApi, graphqlApi];

function seen({
  id,
  name,
  categoryId,
  status,
}: Record<string, unknown>): SeenPet {
  return {
    id: `${id}`,
    name: `${name}`,
    categoryId: `${categoryId}`,
    status: `${status}`,
  };
}

function fromRest<Data>(
  { status, json }: RestResponse,
  read: (body: any) => Data,
): Outcome<Data> {
  return status < 400 ? { data: read(json) } : json;
}

function fromGraphQL<From, Data>(
  { data, errors }: GraphQLResult<From>,
  read: (data: From) => Data,
): Outcome<Data> {
  const [error] = errors ?? [];
  if (!error) return { data: read(data as From) };
  return {
    code: error.extensions.code,
    status: error.extensions.status,
    message: error.message,
  };
}

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
