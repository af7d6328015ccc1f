// These add members to types of Fastify.
import '@fastify/swagger';
import '#engine/api/graphql/schema.js';
import '#engine/api/subscriptions/subscriptions.js';
import type { FastifyInstance } from 'fastify';
import { ApiKeyService, actorOf } from '#engine/access/keys/api-key.service.js';
import { inMemory } from '#engine/access/limits/limiter.js';
import type { Module } from '#engine/api/module.js';
import { buildApp } from '#engine/app.js';
import { type Config, loadConfig } from '#engine/config/config.js';
import { Database } from '#engine/database/database.js';
import {
  complete,
  type Feature,
  type Running,
  startFeatures,
} from '#engine/feature.js';
import { modelOf } from '#engine/process/model.js';
import { Log } from '#engine/runtime/log/log.js';
import { type Observers, observersOf } from '#engine/runtime/observers.js';
import { service } from '../../src/service.ts';
import { Contract } from './contract.ts';
import {
  createTestDatabase,
  optionsFor,
  type TestDatabase,
} from './database.ts';
import { features, modules } from './features.ts';
import { fieldsOfModulesForAll } from './field-resolvers.ts';
import { afterAll, beforeAll } from './jest.ts';
import { distributionOf, type Layout } from './servers/citus.ts';
import { citusLayout } from './servers/citus-database.ts';
import { checkTurns } from './turns.ts';

checkTurns();

/** A running service with its own port and database. */
export interface Store {
  origin: string;
  /** A key with all rights. */
  key: string;
  app: FastifyInstance;
  /**
   * The contract of this service, if it has more modules than schema/
   * describes.
   */
  contract?: Contract | undefined;
  modules: Module[];
  /** The running features. */
  parts: readonly Running[];
  database: Database;
  keys: ApiKeyService;
  /** Removes all animals, and keeps the id counter. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

export interface StartStoreOptions {
  /** A database that the test has created. */
  database?: TestDatabase;
  /** In place of the modules of the service. */
  own?: Module[];
  /** Modules beside those of the service. */
  more?: Module[];
  observers?: readonly Partial<Observers>[];
  /** The optional parts; all of the service by default. */
  parts?: readonly Feature[];
}

/** A variable of all stores of a run: `NAME=value`. */
const [name = '', value = ''] = process.env.TEST_VARIABLE?.split('=') ?? [];

/**
 * Starts the service as `main.ts` does, in this process. A start that fails
 * leaves nothing open.
 */
export async function startStore(
  env: Record<string, string> = {},
  options: StartStoreOptions = {},
): Promise<Store> {
  const opened: Array<() => Promise<unknown>> = [];
  const close = async () => {
    for (const closeOne of opened.splice(0).reverse()) await closeOne();
  };
  try {
    return { ...(await start(env, options, opened)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(
  env: Record<string, string>,
  {
    database: given,
    own = modules,
    more = [],
    observers = [],
    parts: optional = features,
  }: StartStoreOptions,
  opened: Array<() => Promise<unknown>>,
): Promise<Omit<Store, 'close'>> {
  const listed = [...own, ...more];
  const whole = complete({ modules: async () => listed, features: optional });
  const all = await whole.modules();
  const test = given ?? (await createTestDatabase());
  opened.push(test.drop);
  const config = configOf({ ...test.env, ...env }, [...all, ...optional]);
  const parts = await started(optional, config, opened);
  for (const one of observers) parts.push({ name: 'test', observers: one });
  const model = modelOf(all);
  const database = await Database.open(
    {
      ...(await optionsFor({ ...test.env, ...env })),
      observers: observersOf(parts, 'database'),
    },
    model,
    parts.find(({ reads }) => reads)?.reads,
  );
  opened.push(() => database.close());
  await database.assertReachable();
  await database.migrate();
  // The template of a cluster lacks the tables of these modules; some tests
  // create theirs by hand.
  const entities = more
    .filter(({ migrations }) => migrations)
    .flatMap(({ entities = [] }) => entities);
  for (const entity of citusLayout ? entities : []) {
    const { tableName } = database.orm.getMetadata(entity);
    await database.rows(
      { name: '', text: distributionOf(tableName, citusLayout as Layout) },
      [],
    );
  }
  const app = await buildApp({
    config,
    database,
    modules: all,
    parts,
  });
  opened.push(() => app.close());
  const origin = await listening(app);
  const keys = new ApiKeyService(database, actorOf('test'));
  const { key } = await keys.issue({ name: 'test' });
  return {
    origin,
    key,
    app,
    modules: all,
    parts,
    contract:
      more.length > 0 ? new Contract(app.swagger() as never) : undefined,
    database,
    keys,
    empty: async () => {
      await database.rows({ name: 'empty', text: 'delete from pet' }, []);
    },
  };
}

/**
 * Gives all tests of a file one store. @param prepare runs before the first
 * test
 */
export function storeForAll(
  env: Record<string, string> = {},
  prepare?: () => Promise<unknown>,
  options?: StartStoreOptions,
): Store {
  const store = {} as Store;
  fieldsOfModulesForAll(options?.more ?? []);
  beforeAll(async () => {
    Object.assign(store, await startStore(env, options));
    await prepare?.();
  });
  afterAll(() => store.close?.());
  return store;
}

/** Gives all tests of a file another node on the database of their store. */
export function nodeForAll(
  store: Store,
  env: Record<string, string>,
  options?: NodeOptions,
): ServiceNode {
  const node = {} as ServiceNode;
  beforeAll(async () => {
    Object.assign(node, await startNode(store, env, options));
  });
  afterAll(() => node.close?.());
  return node;
}

/** Turns off logs and limits that a test does not set. */
function configOf(
  env: Record<string, string>,
  owners: Array<Module | Feature>,
): Config {
  const quiet = {
    LOG_LEVEL: 'silent',
    AUTH_FAILURES_PER_MINUTE: '0',
    EVENT_LOOP_MAX_DELAY_MS: '0',
    [name]: value,
  };
  return loadConfig({ ...quiet, ...env }, owners, service);
}

/** Starts the optional parts. `opened` closes them. */
async function started(
  optional: readonly Feature[],
  config: Config,
  opened: Array<() => Promise<unknown>>,
): Promise<Running[]> {
  const log = new Log(config.log).logger;
  const parts = await startFeatures(optional, {
    config,
    log,
    limiters: inMemory,
  });
  opened.push(() => Promise.all(parts.map(({ close }) => close?.())));
  return parts;
}

const listening = (app: FastifyInstance) =>
  app.listen({ port: 0, host: '127.0.0.1' });

interface NodeOptions {
  /** The optional parts; all of the service by default. */
  parts?: readonly Feature[];
  log?: Log;
}

type NodeOf = Pick<Store, 'database' | 'key' | 'modules' | 'contract'>;

/**
 * Another node of the service on a store's database, with its own
 * configuration.
 */
export interface ServiceNode {
  contract?: Store['contract'];
  origin: string;
  key: string;
  app: FastifyInstance;
  close(): Promise<void>;
}

/** Starts another node on the store's database; close it before the store. */
export async function startNode(
  { database, key, modules, contract }: NodeOf,
  env: Record<string, string> = {},
  { parts: optional = features, log }: NodeOptions = {},
): Promise<ServiceNode> {
  const opened: Array<() => Promise<unknown>> = [];
  const config = configOf(env, [...modules, ...optional]);
  const parts = await started(optional, config, opened);
  const app = await buildApp({
    config,
    database,
    modules,
    parts,
    ...(log && { log }),
  });
  opened.push(() => app.close());
  return {
    origin: await listening(app),
    key,
    app,
    contract,
    async close() {
      for (const closeOne of opened.splice(0).reverse()) await closeOne();
    },
  };
}

/** Runs `work` on another node with this configuration. */
export async function onNode<Result>(
  store: NodeOf,
  env: Record<string, string>,
  work: (node: ServiceNode) => Promise<Result>,
  options?: NodeOptions,
): Promise<Result> {
  const node = await startNode(store, env, options);
  try {
    return await work(node);
  } finally {
    await node.close();
  }
}
