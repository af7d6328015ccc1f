import { Redactor } from '@animal-store/log/redactor';
import Fastify, { type FastifyInstance } from 'fastify';
import { deprecationHooks } from './access/deprecations/deprecation.ts';
import { DeprecationUsage } from './access/deprecations/usage.ts';
import { expireIdempotencyKeys } from './access/idempotency/expiry.ts';
import { Authenticator } from './access/keys/authenticator.ts';
import { bearer, presentedHint } from './access/keys/bearer.ts';
import { secretsInLines, secretsInText } from './access/keys/secret.ts';
import { FailureLimit } from './access/limits/failure-limit.ts';
import { inMemory, type LimiterStore } from './access/limits/limiter.ts';
import { flushRegularly } from './access/write-behind.ts';
import { type GraphQLParts, graphQL } from './api/graphql/handler.ts';
import { assertSameMembers } from './api/graphql/members.ts';
import { createSchema, serveSchema } from './api/graphql/schema.ts';
import { connections, roomForConnections } from './api/http/connections.ts';
import { cors } from './api/http/headers.ts';
import { lifecycle } from './api/http/lifecycle.ts';
import { caching } from './api/http/negotiation.ts';
import { acceptConnectionsFirst, overload } from './api/http/overload.ts';
import { requireKnownAddress, routeHooks } from './api/http/routes.ts';
import { origin, proxies, serverOptions } from './api/http/server.ts';
import { Turns, takeTurns } from './api/http/turns.ts';
import {
  collectionsOf,
  type Example,
  type Module,
  openModules,
} from './api/module.ts';
import type { Collection } from './api/resources/collection.ts';
import { describeRoute } from './api/rest/describe-route.ts';
import { openApi, section } from './api/rest/openapi.ts';
import { subscriptions } from './api/subscriptions/subscriptions.ts';
import type { Config } from './config/config.ts';
import type { Database } from './database/database.ts';
import { namingAllFaults } from './errors.ts';
import type { Running } from './feature.ts';
import {
  type CheckReadiness,
  type Dependencies,
  health,
  readiness,
} from './runtime/health.ts';
import { Log } from './runtime/log/log.ts';
import {
  addressOf,
  loggingOptions,
  makeChildrenLate,
  requestLog,
} from './runtime/log/request-log.ts';
import { observersOf } from './runtime/observers.ts';
import { scopeNameOf } from './scopes.ts';

declare module 'fastify' {
  interface FastifyInstance {
    checkReadiness: CheckReadiness;
    /** GraphQL operations of all modules. */
    examples: Example[];
    collections: readonly Collection[];
    /** The names of the modules in scopes. */
    scopeModules: readonly string[];
  }
}

export interface AppOptions {
  config: Config;
  /**
   * Already open, and migrated unless MIGRATE_ON_START is false. The caller
   * closes it after closing the app.
   */
  database: Database;
  modules: Module[];
  /** Defaults to lines on standard output. */
  log?: Log;
  /**
   * Further members of `/readyz`.
   *
   * @throws StoreError when it cannot serve
   */
  others?: () => object;
  /** Where limits are counted; in this process by default. */
  limiters?: LimiterStore;
  /** The running features. */
  parts?: readonly Running[];
}

/**
 * Assembles the service. Read from top to bottom, it lists everything the
 * service consists of.
 */
const build = async (options: AppOptions): Promise<FastifyInstance> => {
  const {
    config,
    database,
    others,
    limiters = inMemory,
    parts = [],
    log = new Log(config.log),
  } = options;
  const modules = options.modules.filter(
    ({ isOff }) => !isOff?.(config.values),
  );
  const keyObservers = observersOf(parts, 'key');
  const usage = new DeprecationUsage(database, keyObservers);
  const { bootstrapKey, failuresPerMinute } = config.keys;
  const keys = new Authenticator(database, {
    bootstrapKey,
    failures: failuresPerMinute
      ? new FailureLimit(failuresPerMinute, limiters)
      : undefined,
    identities: parts.find(({ identities }) => identities)?.identities,
    onBootstrapUse: (ip) =>
      log.logger.warn(
        { key: 0, address: addressOf({ ip }) },
        'the bootstrap key is used',
      ),
    observers: keyObservers,
  });
  const redactor = new Redactor(secretsInText, bootstrapKey);
  log.redactor = new Redactor(secretsInLines, bootstrapKey);

  // Longer than the statement timeout, so that PostgreSQL cancels first and
  // reports the reason.
  const timeout = config.database.statementTimeout + 1000;
  const requestObservers = [
    ...observersOf(parts, 'request'),
    requestLog(log, redactor, presentedHint),
  ];
  const app = Fastify({
    ...serverOptions(config.http),
    ...loggingOptions(log, redactor),
  });
  makeChildrenLate(app.log);
  const dependencies: Dependencies = Object.assign(
    {},
    ...parts.map((part) => part.dependencies),
  );

  // Shared by REST and GraphQL, in the order in which a request passes.
  proxies(app, config.http);
  const slowReader = config.http.slowReaderTimeout;
  lifecycle(app, { timeout, slowReader }, requestObservers);
  connections(app, {
    max:
      config.http.maxConnections || roomForConnections(config.database.poolMax),
    // What has arrived by then is answered within the drain.
    lastUpload: config.drainTimeout - timeout - 1000,
    isProxied: config.http.trustProxy !== false,
  });
  await cors(app, config.http.corsOrigins);
  acceptConnectionsFirst(app);
  bearer(app, keys);
  app.decorate('turns', new Turns());
  overload(app, config.http.maxLoopDelay);
  takeTurns(app);
  requireKnownAddress(app);
  await caching(app, config.http.compression);
  subscriptions(app, keys, config.subscriptions);
  routeHooks(app, describeRoute, (route) =>
    deprecationHooks(route, usage, origin),
  );
  for (const buffer of [keys.uses, usage.calls]) flushRegularly(app, buffer);
  expireIdempotencyKeys(app, database, config.idempotencyHours);
  app.decorate(
    'checkReadiness',
    readiness({ app, database, dependencies, others }),
  );
  await app.register(health, { check: app.checkReadiness });
  const tags = modules.map(({ tag }) => tag);
  await openApi(app, config, tags);
  app.decorate(
    'examples',
    modules.flatMap(({ examples = [] }) => examples),
  );
  app.decorate(
    'scopeModules',
    modules.map(({ tag }) => scopeNameOf(tag.name)),
  );
  for (const part of parts) await part.http?.(app, database);

  // REST
  const apis = openModules(modules, database, config.values);
  app.decorate('collections', collectionsOf(apis));
  for (const { tag, routes } of apis)
    await app.register(section(tag.name, routes), { prefix: '/v1' });

  // GraphQL
  const schemaParts = apis.map(
    ({ tag, isLocal, entities = [], resolvers, references, audiences }) => ({
      module: scopeNameOf(tag.name),
      isLocal,
      types: entities.map((one) => database.orm.getMetadata(one).className),
      resolvers,
      references,
      audiences,
    }),
  );
  const graphQLParts: GraphQLParts = Object.assign(
    {},
    ...parts.map(({ graphql }) => graphql),
  );
  const schema = await createSchema(schemaParts, graphQLParts.schema);
  app.decorate('graphqlSchema', schema);
  for (const entity of modules.flatMap(({ entities = [] }) => entities)) {
    const described = database.orm.getMetadata(entity);
    assertSameMembers(
      described,
      app.namedSchemas.get(described.className),
      schema.getType(described.className),
      database.hiding.get(described.tableName),
    );
  }
  await app.register(graphQL, {
    prefix: '/graphql',
    schema,
    ...config.graphql,
    usage,
    observers: observersOf(parts, 'operation'),
    parts: graphQLParts,
    logger: app.log,
  });
  if (config.graphql.introspection) serveSchema(app, schema);

  return app;
};

/** @throws Error that names every fault of the modules */
export const buildApp = (options: AppOptions) =>
  namingAllFaults(() => build(options));
