import {
  CreatePetDocument,
  PetDocument,
  PetsDocument,
} from './generated/graphql.ts';
import { type GraphQLResult, graphql } from './graphql.ts';
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
