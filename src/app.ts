import Fastify, { type FastifyInstance } from 'fastify';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import { deprecations } from './deprecations/headers.ts';
import { DeprecationUsage } from './deprecations/usage.ts';
import { graphiQL } from './explorer/graphiql.ts';
import { sandboxPage } from './explorer/sandbox.ts';
import { graphQL } from './graphql/graphql.ts';
import { createSchema } from './graphql/schema.ts';
import { subscriptions } from './graphql/subscriptions.ts';
import { connectionLimit } from './http/connection-limit.ts';
import { cors } from './http/cors.ts';
import { errors } from './http/errors.ts';
import { everyRequest } from './http/every-request.ts';
import { InFlight, largeBodies } from './http/in-flight.ts';
import { checkedInput } from './http/input.ts';
import { exactJson } from './http/json.ts';
import { KeyMask } from './http/key-mask.ts';
import { LogControl } from './http/log-control.ts';
import { loggingOptions } from './http/logging.ts';
import { notFound } from './http/not-found.ts';
import { representations } from './http/representations.ts';
import { addressOf, requestLog } from './http/request-log.ts';
import { oneHost, serverOptions } from './http/server.ts';
import { UnderWay } from './http/under-way.ts';
import { unusedConnections } from './http/unused-connections.ts';
import { idempotencyKeyExpiry } from './idempotency/expiry.ts';
import { repeatableRoutes } from './idempotency/routes.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { authenticate, bearer } from './keys/bearer.ts';
import { FailureLimit } from './keys/failure-limit.ts';
import { KeyUsage } from './keys/key-usage.ts';
import type { Module } from './module.ts';
import { roomForConnections } from './operations/descriptors.ts';
import { flushing } from './operations/flushing.ts';
import { health } from './operations/health.ts';
import { pages } from './pages/pages.ts';
import { inMemory } from './quotas/limiter.ts';
import { meter } from './quotas/meter.ts';
import { createQuota } from './quotas/quota.ts';
import { openApi, openApiDocument, section } from './rest/openapi.ts';
import { documentedFailures } from './rest/responses.ts';
import { documentedRevalidation } from './rest/revalidation.ts';
import type { Instrumentation } from './telemetry/instrumentation.ts';
import { releasedVersion } from './version.ts';
import type { Parent } from './workers/parent.ts';

export interface AppOptions {
  config: Config;
  /** Already open and migrated. The caller closes it after closing the app. */
  database: Database;
  /** The domain modules to serve. */
  modules: Module[];
  /** Defaults to lines on standard output. */
  log?: LogControl;
  /** Of a worker: what it shares with the others. Absent where one process is the service. */
  parent?: Parent | undefined;
  /** Who watches; the database has been told already. */
  instrumentation?: Instrumentation;
}

const unwatched: Instrumentation = { requests: [], operations: [], databases: [] };

/** Assembles the service. Read from top to bottom, it lists everything the service consists of. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, database, modules, parent, instrumentation = unwatched } = options;
  const { onLookUp, onDeprecatedCall } = instrumentation;
  const control = options.log ?? new LogControl(config.log);
  const { log } = control;
  const counting = parent ?? inMemory;
  const keyUsage = new KeyUsage(database);
  const usage = new DeprecationUsage(database, { onCall: onDeprecatedCall });
  const { bootstrapKey, failuresPerMinute } = config.keys;
  const keys = new ApiKeyService(database, {
    bootstrapKey,
    onUse: (keyId) => keyUsage.used(keyId),
    onBootstrapUse: (ip) => log.warn({ key: 0, address: addressOf({ ip }) }, 'the bootstrap key is used'),
    onLookUp,
  });
  const mask = new KeyMask(bootstrapKey);
  const underWay = new UnderWay();
  const guard = { keys, failures: new FailureLimit(failuresPerMinute, counting) };

  // Longer than the statement timeout, so that PostgreSQL cancels first and the reason is known.
  const call = {
    milliseconds: config.database.statementTimeout + 1000,
    maxBytes: config.http.responseLimit,
    answers: new InFlight('answers', 8 * config.http.responseLimit),
  };
  const eachRequest = { call, observers: [...instrumentation.requests, underWay, requestLog(control, mask)] };
  const app = Fastify({
    ...serverOptions({
      ...config.http,
      everyRequest: eachRequest,
      authenticate: (request) => authenticate(guard, request),
    }),
    ...loggingOptions(log, mask),
  });
  app.decorate('underWay', underWay);
  const quota = await createQuota(config.keys, app.log, counting);

  // Shared by REST and GraphQL, in the order in which a request passes. Fastify checks the declared dependencies.
  await app.register(everyRequest, eachRequest);
  await app.register(errors);
  await app.register(connectionLimit, { max: config.http.maxConnections || roomForConnections(needsOf(config)) });
  await app.register(unusedConnections);
  await app.register(cors, { origins: config.http.corsOrigins });
  await app.register(notFound);
  await app.register(bearer, guard);
  await app.register(oneHost);
  await app.register(largeBodies, { bodies: new InFlight('bodies', 64 * config.http.bodyLimit) });
  await app.register(meter, { quota });
  await app.register(representations, { compression: config.http.compression });
  await app.register(subscriptions, {
    ...config.subscriptions,
    authenticate: (request) => authenticate(guard, request),
  });
  await app.register(exactJson);
  await app.register(checkedInput);
  await app.register(flushing, { notes: [keyUsage, usage] });
  await app.register(idempotencyKeyExpiry, { database, hours: config.idempotencyHours });
  await app.register(health, { database, quota, workers: parent });

  const context = { database, maxTextLength: config.maxTextLength };
  const apis = modules.map((module) => ({ ...module, ...module.open(context) }));

  // REST
  await app.register(documentedFailures);
  await app.register(documentedRevalidation);
  await app.register(repeatableRoutes);
  await app.register(deprecations, { usage });
  await app.register(openApi, { tags: modules.map(({ tag }) => tag) });
  await app.register(openApiDocument);
  for (const { tag, routes } of apis) {
    if (routes) await app.register(section(tag.name, routes), { prefix: '/v1' });
  }

  // GraphQL
  const resolvers = apis.flatMap(({ resolvers = [] }) => resolvers);
  const schema = await createSchema(resolvers, quota !== undefined);
  app.decorate('graphqlSchema', schema);
  const examples = apis.flatMap(({ examples = [] }) => examples);
  const { explorer, ...limited } = config.graphql;
  const page = explorer ? sandboxPage(examples) : undefined;
  await app.register(graphQL, { schema, page, usage, observers: instrumentation.operations, ...limited });
  if (explorer) await app.register(graphiQL, { examples });

  await app.register(pages, { schema, version: releasedVersion(), explorer, introspection: limited.introspection });
  instrumentation.onBuilt?.(app, database);
  return app;
}

/** What a process opens beside the connections of its clients. */
function needsOf({ database: { url, poolMax, readUrls = [] }, keys: { redisUrl } }: Config) {
  // Each read node has a pool and a session for checks; so has the primary, where there are any.
  const toServers = poolMax + (readUrls.length > 0 ? 1 : 0) + readUrls.length * (poolMax + 1);
  // The embedded store has both ends of a connection, and those of other processes on its folder; and its tables' files.
  const ofStore = url ? 0 : 3 * poolMax + 64;
  return { connections: toServers + ofStore + (redisUrl ? 1 : 0), files: 32 };
}
