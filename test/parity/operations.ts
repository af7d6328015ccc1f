import fc from 'fast-check';
import type { Face } from '../support/faces.ts';
import type { KeyKind } from './model.ts';
import { int64, integer, mostly, name, oddJson, oddStatus, oddText, reference, status, validName } from './values.ts';

/** One call through one face; `burst` is many valid creations at once, through both. */
export type Operation =
  | { call: 'list'; face: Face['name']; key: KeyKind; query: { limit?: unknown; status?: unknown; after?: unknown } }
  | { call: 'create'; face: Face['name']; key: KeyKind; newPet: unknown }
  | { call: 'find'; face: Face['name']; key: KeyKind; id: unknown }
  | { call: 'burst'; creations: Array<{ face: Face['name']; newPet: unknown }> };

const face = fc.constantFrom<Face['name'][]>('REST', 'GraphQL');
const key = fc.oneof(
  { weight: 20, arbitrary: fc.constant<KeyKind>('write') },
  { weight: 1, arbitrary: fc.constantFrom<KeyKind[]>('read', 'none', 'unknown', 'revoked') },
);
const id = mostly(reference, integer, oddText, oddJson);
const limit = mostly(
  fc.integer({ min: 1, max: 6 }),
  fc.constantFrom(0, 1, 20, 99, 100, 101),
  integer,
  oddText,
  oddJson,
);
const query = fc.record({ limit, status: mostly(status, oddStatus), after: id }, { requiredKeys: [] });
const validNewPet = fc.record({ name: validName, categoryId: int64, status }, { requiredKeys: ['name', 'categoryId'] });
const wildNewPet = fc.record(
  {
    name: mostly(name, oddJson, fc.constant(5)),
    categoryId: mostly(int64, integer, oddJson, oddText),
    status: mostly(status, oddStatus),
    id: fc.constant(7),
    colour: fc.constant('red'),
  },
  { requiredKeys: [] },
);
const newPet = fc.oneof(
  { weight: 6, arbitrary: validNewPet as fc.Arbitrary<unknown> },
  { weight: 3, arbitrary: wildNewPet },
  { weight: 1, arbitrary: fc.constantFrom<unknown[]>(null, [], 'Rex', 5, true, {}) },
);

const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ call: fc.constant('create' as const), face, key, newPet }) },
  { weight: 4, arbitrary: fc.record({ call: fc.constant('list' as const), face, key, query }) },
  { weight: 3, arbitrary: fc.record({ call: fc.constant('find' as const), face, key, id }) },
  {
    weight: 1,
    arbitrary: fc.record({
      call: fc.constant('burst' as const),
      creations: fc.array(fc.record({ face, newPet: validNewPet as fc.Arbitrary<unknown> }), {
        minLength: 1,
        maxLength: 24,
      }),
    }),
  },
);

/** A short history of a store. */
export const operations: fc.Arbitrary<Operation[]> = fc.array(operation, { minLength: 1, maxLength: 10 });
