import { type Deprecation, dayOf } from '../access/deprecations/deprecation.ts';

/**
 * Fetching one pet by id, in REST and GraphQL. The specification sets the removal, its version 1.0.0 the deprecation.
 */
export const getPetDeprecation: Deprecation = {
  since: new Date('2026-11-20T00:00:00Z'),
  removal: new Date('2030-12-05T00:00:00Z'),
  replacement: '`GET /pets` with the `status` filter',
};

export const getPetRemovalDay = dayOf(getPetDeprecation.removal);
