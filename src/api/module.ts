import type { EntityName, MigrationObject } from '@mikro-orm/core';
import type { TObject } from 'typebox';
import type { CallContext } from '../call-context.ts';
import type { Database } from '../database/database.ts';
import type { IdempotencyClaim } from '../records/insertions.ts';
import type { Int64 } from '../validation/int64.ts';
import type { Page, PageQuery } from '../validation/page.ts';
import type { Validated } from '../validation/validator.ts';
import type { References } from './graphql/schema.ts';
import type { Routes } from './http/bodies.ts';
import type { Example } from './pages/explorers.ts';

/** A domain, in REST and GraphQL. All parts are optional. */
export interface Module {
  /** The section of the REST reference. */
  tag: { name: string; description: string };
  /** Its tables. */
  entities?: EntityName[];
  /** Its migrations. Those of all modules are applied in the order of their names. */
  migrations?: MigrationObject[];
  /** GraphQL operations to try in the explorers. */
  examples?: Example[];
  /** Creates its service and its APIs. */
  open(context: { database: Database }): Apis;
}

export interface Apis {
  /** Its REST routes, under `/v1`. */
  routes?: (app: Routes) => void;
  /** Its resolvers: instances of classes with type-graphql decorators. */
  resolvers?: object[];
  /** Its types to which other subgraphs may refer (`@key(fields: "id")`), with GRAPHQL_FEDERATION. */
  references?: References;
  /** The collections that an operator may seed, export and import. */
  collections?: Collection[];
}

/** Items that an operator can seed, export and import through the module's service. */
export interface Collection {
  /** The name in its path: `pets`. */
  name: string;
  /** The input of a creation. */
  input: TObject;
  /** An item, as REST returns it. */
  item: TObject;
  /** The module's service, or `Records` for a module without rules. */
  service: {
    list(query: Validated<PageQuery>): Promise<Page<{ readonly id: Int64 }>>;
  } & ({ create: Create } | { insert: Create });
  /** Creates a sample input; absent when the collection cannot be seeded. @param pick returns a random member */
  sample?: (pick: PickOne) => object;
}

export type PickOne = <Member>(members: readonly Member[]) => Member;

type Create = (input: never, call?: CallContext, claim?: IdempotencyClaim) => Promise<object>;
