import 'reflect-metadata';
import Fastify, { type FastifyInstance } from 'fastify';
import type { DestinationStream } from 'pino';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import { graphQL } from './graphql/graphql.ts';
import { activityLog } from './keys/activity-log.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { bearer } from './keys/bearer.ts';
import { FailureLimit } from './keys/failure-limit.ts';
import { KeyActivity } from './keys/key-activity.ts';
import { drain } from './operations/drain.ts';
import { health } from './operations/health.ts';
import { loggingOptions, requestLog } from './operations/logging.ts';
import { orderRoutes } from './orders/order.routes.ts';
import { petRoutes } from './pets/pet.routes.ts';
import { PetService } from './pets/pet.service.ts';
import { meter } from './quotas/meter.ts';
import { createQuota } from './quotas/quota.ts';
import { cors } from './rest/cors.ts';
import { deprecationHeaders } from './rest/deprecation.ts';
import { errorHandler } from './rest/error-handler.ts';
import { exactJson } from './rest/exact-json.ts';
import { InFlight, largeBodies } from './rest/in-flight.ts';
import { notFound } from './rest/not-found.ts';
import { openApi, openApiPages } from './rest/openapi.ts';
import { protocol } from './rest/protocol.ts';
import { requestCall } from './rest/request-call.ts';
import { dataHeaders } from './rest/security-headers.ts';
import { serverOptions } from './rest/server.ts';

export interface AppOptions {
  config: Config;
  /** Where log lines go; standard output, line by line, unless stated. */
  log?: DestinationStream;
  /** Open and migrated; whoever opened it closes it, after the app. */
  database: Database;
}

/** Puts the service together. Read from top to bottom it is the list of what the service is. */
export async function buildApp({ config, database, log }: AppOptions): Promise<FastifyInstance> {
  const pets = new PetService(database, config.pets);
  const activity = new KeyActivity(database);
  const keys = new ApiKeyService(database, {
    bootstrapKey: config.keys.bootstrapKey,
    onUse: (keyId) => activity.used(keyId),
  });
  const guard = { keys, failures: new FailureLimit(config.keys.failuresPerMinute) };

  // PostgreSQL gives up a statement first: then the reason is known.
  const call = {
    milliseconds: config.database.statementTimeout + 1000,
    maxBytes: config.http.responseLimit,
    answers: new InFlight('answers', 8 * config.http.responseLimit),
  };
  const app = Fastify({ ...serverOptions(config.http, call, guard), ...loggingOptions(config.logLevel, log) });
  const quota = createQuota(config.keys, app.log);

  await app.register(requestLog);
  await app.register(drain);
  await app.register(dataHeaders);
  await app.register(errorHandler);
  await app.register(cors, { origins: config.http.corsOrigins });
  await app.register(notFound);
  await app.register(requestCall, call);
  await app.register(deprecationHeaders);
  await app.register(bearer, guard);
  await app.register(largeBodies, { bodies: new InFlight('bodies', 64 * config.http.bodyLimit) });
  await app.register(meter, { quota });
  await app.register(activityLog, { activity });
  await app.register(protocol);
  await app.register(exactJson);

  await app.register(openApi);
  await app.register(openApiPages);
  await app.register(health, { database, quota });

  await app.register(petRoutes, { prefix: '/v1', pets });
  await app.register(orderRoutes, { prefix: '/v1' });
  await app.register(graphQL, { pets, activity, hasQuota: quota !== undefined, ...config.graphql });
  return app;
}
