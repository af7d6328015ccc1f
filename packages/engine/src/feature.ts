import type { Command } from 'commander';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Identities } from './access/keys/identities.ts';
import type { LimiterStore } from './access/limits/limiter.ts';
import type { GraphQLParts } from './api/graphql/handler.ts';
import type { Module } from './api/module.ts';
import type { Config, Identity } from './config/config.ts';
import type { ValuesOf, Variables } from './config/variables.ts';
import type {
  Database,
  DatabaseOptions,
  Model,
  OwnStore,
} from './database/database.ts';
import type { OpenReads } from './database/reads.ts';
import type { ServiceProcess, Serving } from './process/service-types.ts';
import type { Dependencies } from './runtime/health.ts';
import type { Observers } from './runtime/observers.ts';

/**
 * An optional part of the service: a folder in `features/`, and an entry in
 * the list of a service. Its `index.ts` imports variables and types only, because every
 * command loads it.
 */
export interface Feature<Own extends Variables = Variables> {
  /** The name of its folder. */
  readonly name: string;
  /** The features that the list must have before it. */
  readonly needs?: readonly string[];
  /** Its variables of the environment. */
  readonly variables?: Own;
  /** Its addresses for a browser, which the start shows. */
  addresses?(settings: Settings<Own>): readonly string[];
  /**
   * Its tables, and what serves them. It loads their code.
   *
   * @param modules those of the service
   * @returns undefined when none of these needs it
   */
  module?(modules: readonly Module[]): Promise<Module | undefined>;
  /** Whether callers have tenants. */
  namesTenants?(settings: Settings<Own>): boolean;
  /** Adds commands. Each loads its code when it runs. */
  commands?(program: Command, stores: Stores): Promise<void>;
  /** What `doctor` checks. It starts nothing. */
  checks?(settings: Settings<Own>, store: ConfiguredStore): DoctorCheck[];
  /** The store that it keeps where DATABASE_URL names none. */
  store?(settings: Settings<Own>): Promise<OwnStore>;
  /**
   * Makes this process one of several that serve, or their parent.
   *
   * @returns undefined when it is switched off
   */
  serving?(
    service: ServiceProcess,
    values: ValuesOf<Own>,
  ): Promise<Serving | undefined>;
  /**
   * Starts it in a process that serves, before the database opens, and loads
   * its code.
   *
   * @returns undefined when it is switched off
   */
  start?(context: FeatureContext<Own>): Promise<Parts | undefined>;
  /** Starts it in the parent of workers, which serves operators only. */
  supervise?(context: FeatureContext<Own>): Promise<Parts | undefined>;
}

export interface Settings<Own extends Variables = Variables> {
  config: Config;
  /** The values of its own variables. */
  values: ValuesOf<Own>;
}

export interface FeatureContext<Own extends Variables = Variables>
  extends Settings<Own> {
  log: Logger;
  /** Where limits are counted: in this process, or for all workers. */
  limiters: LimiterStore;
  /** What writes the log. */
  output?: { readonly dropped: number };
  /** Whether a parent process serves operators in its place. */
  isWorker?: boolean;
  /** The features that run; all of them when `http` is called. */
  running: readonly Running[];
}

/** What a running feature adds. */
export interface Parts {
  /**
   * Adds hooks and routes, after all hooks of the core and before the routes of
   * modules. A hook for some routes only is added by `onRoute`.
   */
  http?(app: FastifyInstance, database: Database): void | Promise<void>;
  /** Knows callers without a key of ours. */
  identities?: Identities;
  /** Answers reads in place of the primary. */
  reads?: OpenReads;
  /** What it uses: members of `/readyz` and of a metric. */
  dependencies?: Dependencies;
  /** Adds routes to the operations port. */
  operations?(app: FastifyInstance): void;
  /** What operators see of it, if they see metrics. */
  metrics?: readonly Metric[];
  /** Changes of the GraphQL API. */
  graphql?: GraphQLParts;
  /** Is told of requests, operations, round trips and keys. */
  observers?: Partial<Observers>;
  /** Closes what it opened, after the app. */
  close?(): Promise<void>;
}

/** A value and its label values, in the order of the labels. */
export type Reading = [value: number, ...labels: string[]];

/** A metric that is read at each scrape. */
export interface Metric {
  /** A counter ends with `_total`; others are gauges. */
  name: string;
  help: string;
  labels?: string[];
  /** Combines readings with the same labels, also of workers; `sum` if absent. */
  of?: 'sum' | 'min' | 'max';
  /** @returns a number where there are no labels */
  read(): number | Reading[] | Promise<number | Reading[]>;
}

/** A feature that is switched on. */
export type Running = Parts & { readonly name: string };

/** A check of `doctor`. */
export interface DoctorCheck {
  /** Its subject, as the first word of the line: `redis`. */
  name: string;
  /** What to do when it fails. */
  remedy: string;
  /**
   * `warning`: the service works without it; `failure`, the default: it does
   * not.
   */
  state?: 'warning' | 'failure';
  /**
   * @returns what it found
   * @throws Error that says what is wrong
   */
  run(): Promise<string>;
}

/** What a service consists of. Its programs hand it down. */
export interface Service extends Identity {
  /** Loads its modules, which help and usage errors do not need. */
  modules(): Promise<Module[]>;
  /** In the order in which they start and see a request. */
  readonly features: readonly Feature[];
}

/** A service with the modules of its features after its own. */
export function complete<Listed extends Pick<Service, 'modules' | 'features'>>(
  service: Listed,
): Listed {
  const modules = async () => {
    const own = await service.modules();
    const asked = service.features.map((one) => one.module?.(own));
    const further = await Promise.all(asked);
    return [...own, ...further.filter((one) => one !== undefined)];
  };
  return { ...service, modules };
}

/** @returns a warning of rows that are closed to every caller, if any */
export function closedRows(
  { features }: Service,
  config: Config,
  { tenanted }: Database,
) {
  const settings = { config, values: config.values };
  const isOpen = features.some((one) => one.namesTenants?.(settings));
  if (isOpen || tenanted.size === 0) return undefined;
  return `no caller has a tenant, which ${[...tenanted].join(', ')} need: set JWT_TENANT of the feature tokens`;
}

/** The store that the configuration names, not yet opened. */
export interface ConfiguredStore {
  config: Config;
  options: DatabaseOptions;
  model: Model;
  modules: Module[];
}

/** What commands work on. */
export interface Stores {
  configuredStore(): Promise<ConfiguredStore>;
  /**
   * Runs work on the configured database, migrated unless MIGRATE_ON_START is
   * false.
   */
  withDatabase<T>(
    work: (database: Database, store: ConfiguredStore) => Promise<T>,
  ): Promise<T>;
}

/** Infers the types of the values from the variables. */
export const feature = <Own extends Variables = Record<never, never>>(
  one: Feature<Own>,
) => one;

/**
 * Starts features in the order of their list.
 *
 * @throws Error of the first that cannot start, or that lacks another; the
 *   others are closed
 */
export async function startFeatures(
  features: readonly Feature[],
  context: Omit<FeatureContext, 'values' | 'running'>,
  way: 'start' | 'supervise' = 'start',
) {
  const running: Running[] = [];
  const { values } = context.config;
  const whole = { ...context, values, running };
  const listed = new Set<string>();
  try {
    for (const feature of features) {
      const { name, needs = [] } = feature;
      const missing = needs.filter((one) => !listed.has(one));
      if (missing.length > 0)
        throw new Error(
          `${name} needs ${missing} before it in the list of the service.`,
        );
      listed.add(name);
      const parts = await feature[way]?.(whole);
      if (parts) running.push({ name, ...parts });
    }
    return running;
  } catch (error) {
    await Promise.allSettled(running.map(({ close }) => close?.()));
    throw error;
  }
}

/**
 * How to open the configured database.
 *
 * @throws Error when DATABASE_URL names none, and no feature keeps a store
 */
export async function databaseOptions(
  features: readonly Feature[],
  config: Config,
): Promise<DatabaseOptions> {
  const { database, values } = config;
  if (database.url) return database;
  const keeper = features.find(({ store }) => store);
  const ownStore = await keeper?.store?.({ config, values });
  if (ownStore) return { ...database, ownStore };
  throw new Error('Configuration error:\n  DATABASE_URL must name a database');
}
