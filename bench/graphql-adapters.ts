import { type Adapter, json, petRows } from './adapters.ts';
import type { Operation } from './workloads.ts';

/**
 * One server's documents for the three operations. `pets` reads one pet or
 * several from `data`.
 */
interface Dialect {
  list: string;
  find: string;
  create: string;
  listVariables(operation: Operation & { kind: 'list' }): object;
  /** The input of a creation, if its members differ. */
  inputOf?(newPet: Record<string, string>): object;
  pets(data: Record<string, unknown>): unknown;
}

function graphQL(
  dialect: Dialect,
  headers: Record<string, string> = {},
): Adapter {
  return {
    request(operation) {
      const body = JSON.stringify({
        query: dialect[operation.kind],
        variables: variables(dialect, operation),
      });
      return {
        method: 'POST',
        path: '/graphql',
        headers: { ...headers, ...json },
        body,
      };
    },
    pets: (response) =>
      petRows(
        dialect.pets((response as { data: Record<string, unknown> }).data),
      ),
  };
}

const fields = 'id name categoryId status';

/** The schema of this service, which the hand-written servers share. */
export function ownGraphQL(headers: Record<string, string> = {}): Adapter {
  const dialect: Dialect = {
    list: `query ($status: PetStatus, $limit: Int, $after: ID) { pets(status: $status, limit: $limit, after: $after) { ${fields} } }`,
    find: `query ($id: ID!) { pet(id: $id) { ${fields} } }`,
    create: `mutation ($input: NewPet!) { createPet(input: $input) { ${fields} } }`,
    listVariables: ({ kind: _, after, ...rest }) => ({
      ...rest,
      after: after?.toString(),
    }),
    pets: (data) => Object.values(data)[0],
  };
  return graphQL(dialect, headers);
}

export function platformaticGraphQL(): Adapter {
  return graphQL({
    list: `query ($limit: LimitInt, $where: PetWhereArguments) { pet(limit: $limit, where: $where, orderBy: [{ field: id, direction: ASC }]) { ${fields} } }`,
    find: `query ($id: ID!) { getPetById(id: $id) { ${fields} } }`,
    create: `mutation ($input: PetInput!) { savePet(input: $input) { ${fields} } }`,
    listVariables: ({ limit, status, after }) => ({
      limit,
      where: {
        ...(status && { status: { eq: status } }),
        ...(after && { id: { gt: String(after) } }),
      },
    }),
    pets: (data) => Object.values(data)[0],
  });
}

export function directusGraphQL(headers: Record<string, string>): Adapter {
  const columns = 'id name category_id status';
  return graphQL(
    {
      list: `query ($limit: Int, $filter: pet_filter) { pet(limit: $limit, sort: ["id"], filter: $filter) { ${columns} } }`,
      find: `query ($id: ID!) { pet_by_id(id: $id) { ${columns} } }`,
      create: `mutation ($input: create_pet_input!) { create_pet_item(data: $input) { ${columns} } }`,
      listVariables: ({ limit, status, after }) => ({
        limit,
        filter: {
          ...(status && { status: { _eq: status } }),
          ...(after && { id: { _gt: String(after) } }),
        },
      }),
      inputOf: ({ categoryId, ...rest }) => ({
        ...rest,
        category_id: categoryId,
      }),
      pets: (data) => Object.values(data)[0],
    },
    headers,
  );
}

/**
 * PostGraphile's cursor consists of a digest of the order and the last id.
 * `prepare` reads the digest from the server.
 */
export function postGraphile(): Adapter {
  const rowFields = 'rowId name categoryId status';
  let order = '';
  const cursor = (id: number) =>
    Buffer.from(JSON.stringify([order, String(id)])).toString('base64');
  const adapter = graphQL({
    list: `query ($first: Int, $after: Cursor, $condition: PetCondition) { allPets(first: $first, after: $after, condition: $condition, orderBy: [PRIMARY_KEY_ASC]) { nodes { ${rowFields} } } }`,
    find: `query ($id: BigInt!) { petByRowId(rowId: $id) { ${rowFields} } }`,
    create: `mutation ($input: PetInput!) { createPet(input: { pet: $input }) { pet { ${rowFields} } } }`,
    listVariables: ({ limit, status, after }) => ({
      first: limit,
      ...(after && { after: cursor(after) }),
      ...(status && { condition: { status } }),
    }),
    pets(data) {
      const result = Object.values(data)[0] as {
        nodes?: unknown;
        pet?: unknown;
      };
      return result.nodes ?? result.pet ?? result;
    },
  });
  async function prepare(base: string): Promise<void> {
    const body = JSON.stringify({
      query:
        '{ allPets(first: 1, orderBy: [PRIMARY_KEY_ASC]) { edges { cursor } } }',
    });
    const response = await fetch(`${base}/graphql`, {
      method: 'POST',
      headers: json,
      body,
    });
    const { data } = (await response.json()) as {
      data: { allPets: { edges: [{ cursor: string }] } };
    };
    order = JSON.parse(
      Buffer.from(data.allPets.edges[0].cursor, 'base64').toString(),
    )[0];
  }
  return { ...adapter, prepare };
}

function variables(dialect: Dialect, operation: Operation): object {
  if (operation.kind === 'list') return dialect.listVariables(operation);
  if (operation.kind === 'find') return { id: String(operation.id) };
  const { kind: _, categoryId, ...rest } = operation;
  const newPet = { ...rest, categoryId: String(categoryId) };
  return { input: dialect.inputOf?.(newPet) ?? newPet };
}
