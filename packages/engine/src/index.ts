// What modules of a service import. What it names is the interface of the
// engine; the rest is its own.
import 'reflect-metadata';
// These add members to types of Fastify.
import './access/idempotency/idempotency-key.ts';
import './access/keys/bearer.ts';
import './api/http/headers.ts';
import './api/http/lifecycle.ts';

export {
  type DeprecatedField,
  type Deprecation,
  dayOf,
} from './access/deprecations/deprecation.ts';
export type { GraphQLContext } from './api/graphql/context.ts';
export {
  argumentsOf,
  inputTypeOf,
  objectTypeOf,
} from './api/graphql/members.ts';
export {
  connectionOf,
  connectionValidator,
  ID,
  Idempotent,
  Live,
  toConnection,
} from './api/graphql/types.ts';
export type { Routes } from './api/http/routes.ts';
export type { Example, Module } from './api/module.ts';
export type { PickOne } from './api/resources/collection.ts';
export { failure, pageOf, success } from './api/rest/documented-responses.ts';
export { orNotFound, sendPage } from './api/rest/responses.ts';
export { Call } from './call.ts';
export type { About } from './config/config.ts';
export {
  flag,
  milliseconds,
  secretText,
  text,
  type Variable,
  type Variables,
  whole,
} from './config/variables.ts';
export type { Database } from './database/database.ts';
export { StoreError } from './errors.ts';
export { type Feature, feature, type Parts, type Service } from './feature.ts';
export { columnsOf } from './records/columns.ts';
export {
  type ListEvent,
  LiveList,
  type LiveQuery,
} from './records/live-list.ts';
export { Records } from './records/records.ts';
export type { Repository } from './records/repository.ts';
export { type Int64, int64FromText } from './validation/int64.ts';
export { listQuery } from './validation/list-query.ts';
export { pageQueryMembers } from './validation/page.ts';
export { type Kind, ofKind } from './validation/rules.ts';
export {
  changeSchema,
  decimalSchema,
  enumSchema,
  idSchema,
  int64Schema,
  itemSchema,
  moment,
  nullable,
  removalSchema,
  textSchema,
  use,
  versionSchema,
  withDefault,
} from './validation/schemas.ts';
export { type Input, validator } from './validation/validator.ts';
