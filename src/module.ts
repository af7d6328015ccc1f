import type { EntityName, MigrationObject } from '@mikro-orm/core';
import type { Routes } from './api/http/input.ts';
import type { Example } from './api/pages/example.ts';
import type { Collection } from './commands/data/collection.ts';
import type { Database } from './storage/database/database.ts';

/** What a module gets when the service starts. */
export interface ModuleContext {
  database: Database;
}

/** A domain, in REST and GraphQL. It omits what it does not need. */
export interface Module {
  /** Its section of the REST reference. */
  tag: { name: string; description: string };
  /** Its tables. */
  entities?: EntityName[];
  /** Applied with those of all modules, in the order of their names. */
  migrations?: MigrationObject[];
  /** What an operator may seed, export and import. */
  collections?: Collection[];
  /** GraphQL operations to try in the explorers. */
  examples?: Example[];
  /** Builds its service, and its APIs on top of that. */
  open(context: ModuleContext): Apis;
}

export interface Apis {
  /** Its REST routes, under `/v1`. */
  routes?: (app: Routes) => void;
  /** Its resolvers: instances of classes with type-graphql decorators. */
  resolvers?: object[];
}
