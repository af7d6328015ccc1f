import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { DestinationStream } from 'pino';
import { secretPrefix } from '../keys/secret.ts';

const acceptableId = /^[\w.:-]{1,64}$/;

/** Fastify's options for logging: JSON lines, one per request, each with the request's id. */
export function loggingOptions(level: string, stream: DestinationStream = process.stdout): FastifyServerOptions {
  const serializers = { req: requestOf, err: errorOf };
  return {
    logger: level === 'silent' ? false : { level, base: null, serializers, stream },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
  };
}

/** The client's `X-Request-Id` when it is a plain one, so that a trace can be followed; a new one otherwise. */
function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  // Whoever sends its key there by mistake must not find it in a log.
  return typeof given === 'string' && acceptableId.test(given) && !given.includes(secretPrefix) ? given : randomUUID();
}

const longestPath = 256;

// Neither headers nor the query: keys and other secrets end up there. A key that ended up in the path is cut.
function requestOf({ method, url }: FastifyRequest) {
  const [path = ''] = url.slice(0, longestPath).split('?', 1);
  const plain = path.includes('%') ? decoded(path) : path;
  return { method, path: plain.includes(secretPrefix) ? plain.replaceAll(/ask_\w*/g, `${secretPrefix}...`) : path };
}

/** A key that ended up there may be percent-encoded. */
function decoded(path: string): string {
  return path.replace(/%([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Nothing that a driver hangs onto an error: the command of Redis that failed may hold its password. */
function errorOf(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error), stack: '' };
  const { name, message, stack = '', cause } = error;
  const { code } = error as NodeJS.ErrnoException;
  const causes = error instanceof AggregateError ? error.errors : cause === undefined ? [] : [cause];
  return { type: name, code, message, stack, ...(causes.length > 0 && { causes: causes.map(errorOf) }) };
}

interface LoggedError {
  [member: string]: unknown;
  type: string;
  message: string;
  stack: string;
}

/** Logs every request when it has been answered, or when the client has gone, and tells the client its id. */
export const requestLog = fastifyPlugin(async (app: FastifyInstance) => {
  app.addHook('onRequest', (request, reply, done) => {
    const arrived = performance.now();
    reply.header('x-request-id', request.id);
    reply.raw.once('close', () => {
      const ms = Math.round((performance.now() - arrived) * 100) / 100;
      const fields = { req: request, status: reply.statusCode, ms, key: request.caller?.id };
      if (reply.raw.writableFinished) request.log.info(fields, 'answered');
      else request.log.info({ ...fields, status: undefined }, 'aborted by the client');
    });
    done();
  });
});
