import type { EntityName, MigrationObject } from '@mikro-orm/core';
import type { TObject } from 'typebox';
import type { Routes } from './api/http/input.ts';
import type { Example } from './api/pages/explorers.ts';
import type { Deadline } from './deadline.ts';
import type { Database } from './storage/database/database.ts';
import type { Checked } from './storage/input/check.ts';
import type { Int64 } from './storage/input/int64.ts';
import type { Page, PageQuery } from './storage/input/page.ts';
import type { IdempotencyClaim } from './storage/records/insertions.ts';

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
  /** What an operator may seed, export and import. */
  collections?: Collection[];
}

/** Items of one kind that an operator seeds, exports and imports through the service of their module. */
export interface Collection {
  /** As in its path: `pets`. */
  name: string;
  /** The input of a creation. */
  input: TObject;
  /** An item, as REST returns it. */
  item: TObject;
  /** The service of the module, or its `Records` where it has no rules of its own. */
  service: {
    list(query: Checked<PageQuery>): Promise<Page<{ readonly id: Int64 }>>;
  } & ({ create: Create } | { insert: Create });
  /** Makes a plausible input; absent when the collection cannot be seeded. @param pick returns a random member */
  sample?: (pick: Pick) => object;
}

export type Pick = <Member>(members: readonly Member[]) => Member;

type Create = (input: never, deadline?: Deadline, once?: IdempotencyClaim) => Promise<object>;
