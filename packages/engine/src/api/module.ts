import type { EntityName, MigrationObject } from '@mikro-orm/core';
import type { ValuesOf, Variables } from '../config/variables.ts';
import type { Database } from '../database/database.ts';
import { reportThrown } from '../errors.ts';
import { scopeNameOf } from '../scopes.ts';
import type { Collection } from './resources/collection.ts';
import type { Served } from './resources/resource.ts';

/** An operation that shows a reader what GraphQL can do. */
export interface Example {
  /** A short description. */
  title: string;
  /**
   * One named operation. Its variable names are unique among all examples,
   * because a page may join them in one document.
   */
  document: string;
  variables?: Record<string, unknown>;
}

/** What a module gets. */
export interface Context<Own extends Variables = Variables> {
  database: Database;
  /** The values of its own variables. */
  config: ValuesOf<Own>;
  /**
   * The service of another module, which is opened before.
   *
   * @throws Error if it is not listed, or needs this one
   */
  serviceOf<Service>(module: Module<Service>): Service;
  /** The collections of modules that are open, with their names in scopes. */
  collections(): Array<Collection & { module: string }>;
}

/** A domain, in REST and GraphQL. All parts are optional. */
export interface Module<Service = unknown, Own extends Variables = Variables> {
  /** The section of the REST reference. */
  tag: { name: string; description: string };
  /** Its tables. */
  entities?: EntityName[];
  /**
   * Its migrations. Those of all modules are applied in the order of their
   * names.
   */
  migrations?: MigrationObject[];
  /** Whether collections of it leave a trace (`trace` of `Records`). */
  keepsChanges?: boolean;
  /** GraphQL operations that pages show. */
  examples?: Example[];
  /**
   * Its own variables of the environment, which `start --help` lists.
   */
  variables?: Own;
  /**
   * Leaves its GraphQL out of a supergraph, whose services may each have such a
   * module.
   */
  isLocal?: true;
  /** Leaves it out of the APIs; its tables stay. */
  isOff?(config: ValuesOf<Own>): boolean;
  /** Creates its service and its APIs. */
  open(context: Context<Own>): Apis<Service>;
}

interface Apis<Service = unknown> extends Partial<Served> {
  /** What other modules get by `serviceOf`. */
  service?: Service;
  /** Its declared resources, which are served before the others. */
  resources?: Array<Partial<Served>>;
}

/** What a module serves, with its declared resources. */
type Opened = Apis & Served;

/**
 * Opens each module once.
 *
 * @param config the values of their variables
 * @throws Error without a module, for a service of a module that is not listed,
 *   or that needs the asking one
 */
export function openModules(
  modules: Module[],
  database: Database,
  config: ValuesOf<Variables>,
): Array<Module & Opened> {
  if (modules.length === 0) throw new Error('The service lists no module.');
  const opened = new Map<Module, Opened | undefined>();
  const serviceOf = (module: Module) => open(module).service as never;
  const collections = () =>
    [...opened].flatMap(([{ tag }, apis]) =>
      (apis?.collections ?? []).map((one) => {
        const module = scopeNameOf(tag.name);
        return { ...one, module };
      }),
    );
  const context = { database, config, serviceOf, collections };
  function open(module: Module) {
    const { name } = module.tag;
    if (!modules.includes(module))
      throw new Error(
        `A module needs ${name}, which the service does not list.`,
      );
    if (!opened.has(module)) {
      opened.set(module, undefined);
      const apis = reportThrown(() => module.open(context));
      opened.set(module, withResources(apis ?? {}));
    }
    const apis = opened.get(module);
    if (!apis) throw new Error(`${name} needs itself, through other modules.`);
    return apis;
  }
  return modules.map((module) => ({ ...module, ...open(module) }));
}

export function collectionsOf(opened: Apis[]) {
  return opened.flatMap(({ collections = [] }) => collections);
}

/** Adds declared resources to what a module serves beside them. */
function withResources({ resources = [], ...beside }: Apis): Opened {
  const all: Apis[] = [...resources, beside];
  return {
    ...beside,
    routes(app) {
      for (const { routes } of all) routes?.(app);
    },
    resolvers: all.flatMap(({ resolvers = [] }) => resolvers),
    references: Object.assign({}, ...all.map(({ references }) => references)),
    audiences: Object.assign({}, ...all.map(({ audiences }) => audiences)),
    collections: collectionsOf(all),
  };
}
