import Fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import { deprecations } from './deprecations/headers.ts';
import { DeprecationUsage } from './deprecations/usage.ts';
import { graphQL } from './graphql/graphql.ts';
import { createSchema } from './graphql/schema.ts';
import { cors } from './http/cors.ts';
import { errors } from './http/errors.ts';
import { everyRequest } from './http/every-request.ts';
import { InFlight, largeBodies } from './http/in-flight.ts';
import { checkedInput } from './http/input.ts';
import { exactJson } from './http/json.ts';
import { createLog, loggingOptions } from './http/logging.ts';
import { notFound } from './http/not-found.ts';
import { oneHost, serverOptions } from './http/server.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { authenticate, bearer } from './keys/bearer.ts';
import { FailureLimit } from './keys/failure-limit.ts';
import { KeyUsage } from './keys/key-usage.ts';
import type { Module } from './module.ts';
import { flushing } from './operations/flushing.ts';
import { health } from './operations/health.ts';
import { inMemory } from './quotas/limiter.ts';
import { meter } from './quotas/meter.ts';
import { createQuota } from './quotas/quota.ts';
import { openApi, openApiPages, section } from './rest/openapi.ts';
import { documentedFailures } from './rest/responses.ts';
import type { Parent } from './workers/parent.ts';

export interface AppOptions {
  config: Config;
  /** Already open and migrated. The caller closes it after closing the app. */
  database: Database;
  /** The domain modules to serve. */
  modules: Module[];
  /** Defaults to lines on standard output. */
  log?: Logger;
  /** Of a worker: what it shares with the others. Absent where one process is the service. */
  parent?: Parent | undefined;
}

/** Assembles the service. Read from top to bottom, it lists everything the service consists of. */
export async function buildApp({ config, database, modules, log, parent }: AppOptions): Promise<FastifyInstance> {
  const counting = parent ?? inMemory;
  const keyUsage = new KeyUsage(database);
  const usage = new DeprecationUsage(database);
  const { bootstrapKey, failuresPerMinute } = config.keys;
  const keys = new ApiKeyService(database, { bootstrapKey, onUse: (keyId) => keyUsage.used(keyId) });
  const guard = { keys, failures: new FailureLimit(failuresPerMinute, counting) };

  // Longer than the statement timeout, so that PostgreSQL cancels first and the reason is known.
  const call = {
    milliseconds: config.database.statementTimeout + 1000,
    maxBytes: config.http.responseLimit,
    answers: new InFlight('answers', 8 * config.http.responseLimit),
  };
  const app = Fastify({
    ...serverOptions({ ...config.http, call, authenticate: (request) => authenticate(guard, request) }),
    ...loggingOptions(log ?? createLog(config.logLevel)),
  });
  const quota = await createQuota(config.keys, app.log, counting);

  // Shared by REST and GraphQL, in the order in which a request passes. Fastify checks the declared dependencies.
  await app.register(everyRequest, call);
  await app.register(errors);
  await app.register(cors, { origins: config.http.corsOrigins });
  await app.register(notFound);
  await app.register(bearer, guard);
  await app.register(oneHost);
  await app.register(largeBodies, { bodies: new InFlight('bodies', 64 * config.http.bodyLimit) });
  await app.register(meter, { quota });
  await app.register(exactJson);
  await app.register(checkedInput);
  await app.register(flushing, { notes: [keyUsage, usage] });
  await app.register(health, { database, quota, workers: parent });

  const context = { database, maxTextLength: config.maxTextLength };
  const apis = modules.map((module) => ({ ...module, ...module.open(context) }));

  // REST
  await app.register(documentedFailures);
  await app.register(deprecations, { usage });
  await app.register(openApi, { tags: modules.map(({ tag }) => tag) });
  await app.register(openApiPages);
  for (const { tag, routes } of apis) {
    if (routes) await app.register(section(tag.name, routes), { prefix: '/v1' });
  }

  // GraphQL
  const resolvers = apis.flatMap(({ resolvers = [] }) => resolvers);
  const schema = await createSchema(resolvers, quota !== undefined);
  app.decorate('graphqlSchema', schema);
  const examples = apis.flatMap(({ example = [] }) => example);
  await app.register(graphQL, { schema, examples, usage, ...config.graphql });
  return app;
}
