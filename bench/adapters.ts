import type { Operation } from './workloads.ts';

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export interface PetRow {
  id: string;
  name: string;
  categoryId: string;
  status: string;
}

/**
 * Translates operations into one system's idiomatic requests, and reads its
 * responses.
 */
export interface Adapter {
  /** Reads values that the requests need from a running server. */
  prepare?(base: string): Promise<void>;
  request(operation: Operation): HttpRequest;
  /** The pets in a response: those of a list, or the one found or created. */
  pets(response: unknown): PetRow[];
}

export const json = { 'content-type': 'application/json' };

/** REST according to the specification. */
export function specifiedRest(headers: Record<string, string> = {}): Adapter {
  return {
    request(operation) {
      if (operation.kind === 'find')
        return { method: 'GET', path: `/v1/pets/${operation.id}`, headers };
      if (operation.kind === 'list')
        return { method: 'GET', path: `/v1/pets?${query(operation)}`, headers };
      const { kind: _, ...newPet } = operation;
      return {
        method: 'POST',
        path: '/v1/pets',
        headers: { ...headers, ...json },
        body: JSON.stringify(newPet),
      };
    },
    pets: petRows,
  };
}

/** REST as Platformatic derives it from the table. */
export function platformaticRest(): Adapter {
  return {
    request(operation) {
      if (operation.kind === 'find')
        return { method: 'GET', path: `/pet/${operation.id}`, headers: {} };
      if (operation.kind === 'create') {
        const { kind: _, ...newPet } = operation;
        return {
          method: 'POST',
          path: '/pet/',
          headers: json,
          body: JSON.stringify(newPet),
        };
      }
      const { limit, status, after } = operation;
      const parameters = {
        limit,
        'orderby.id': 'asc',
        'where.status.eq': status,
        'where.id.gt': after,
      };
      return { method: 'GET', path: `/pet/?${query(parameters)}`, headers: {} };
    },
    pets: petRows,
  };
}

/** REST as Directus derives it from the table. */
export function directusRest(headers: Record<string, string>): Adapter {
  const path = '/items/pet';
  return {
    request(operation) {
      if (operation.kind === 'find')
        return { method: 'GET', path: `${path}/${operation.id}`, headers };
      if (operation.kind === 'list') {
        const { limit, status, after } = operation;
        const parameters = {
          limit,
          sort: 'id',
          'filter[status][_eq]': status,
          'filter[id][_gt]': after,
        };
        return { method: 'GET', path: `${path}?${query(parameters)}`, headers };
      }
      const { kind: _, categoryId, ...rest } = operation;
      return {
        method: 'POST',
        path,
        headers: { ...headers, ...json },
        body: JSON.stringify({ ...rest, category_id: `${categoryId}` }),
      };
    },
    pets: (response) => petRows((response as { data: unknown }).data),
  };
}

function query(values: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (name !== 'kind' && value !== undefined)
      parameters.set(name, String(value));
  }
  return parameters.toString();
}

/**
 * Normalizes the rows of all systems. PostGraphile calls the id `rowId`, and
 * Directus has the names of columns.
 */
export function petRows(response: unknown): PetRow[] {
  const rows = (Array.isArray(response) ? response : [response]) as Array<
    Record<string, unknown>
  >;
  return rows.map((row) => ({
    id: String(row.id ?? row.rowId),
    name: String(row.name),
    categoryId: String(row.categoryId ?? row.category_id),
    status: String(row.status),
  }));
}
