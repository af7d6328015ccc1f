import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

const acceptableId = /^[\w.:-]{1,64}$/;

/** Fastify's options for logging: JSON lines on standard output, one per request, each with the request's id. */
export function loggingOptions(level: string): FastifyServerOptions {
  return {
    logger: level === 'silent' ? false : { level, base: null, serializers: { req: requestOf } },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
  };
}

/** The client's `X-Request-Id` when it is a plain one, so that a trace can be followed; a new one otherwise. */
function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && acceptableId.test(given) ? given : randomUUID();
}

// Neither headers nor the query: keys and other secrets end up there.
function requestOf({ method, url }: FastifyRequest) {
  return { method, path: url.split('?', 1)[0] };
}

/** Logs every answered request and tells the client its id. */
export const requestLog = fastifyPlugin(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        req: request,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 100) / 100,
        key: request.caller?.id,
      },
      'answered',
    );
  });
});
