// What modules import that declare their tables.
export { operation } from './api/resources/operation.ts';
export { type ItemOf, type NewOf, resource } from './api/resources/resource.ts';
export type { Audience } from './records/rows/ownership.ts';
export { type Source, select } from './records/select.ts';
