export type { AddedOptions } from './added.ts';
export {
  AnimalStore,
  type AnimalStoreOptions,
  type Count,
  type CountOptions,
  type Page,
  type PageOptions,
  type WriteOptions,
} from './animal-store.ts';
export type { IdType, Int64, NewPet, Pet, PetStatus, Sort } from './pet.ts';
export {
  type Code,
  errorCodes,
  type GraphQLFailure,
  StoreError,
} from './store-error.ts';
export type { CallOptions } from './transport.ts';
export type { TypedDocument } from './typed-document.ts';
