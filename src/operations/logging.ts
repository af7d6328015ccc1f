import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type DestinationStream, destination } from 'pino';
import { secretPrefix } from '../keys/secret.ts';

const acceptableId = /^[\w.:-]{1,64}$/;

/** Fastify's options for logging: JSON lines on standard output, one per request, each with the request's id. */
export function loggingOptions(level: string): FastifyServerOptions {
  return {
    logger: level === 'silent' ? false : { level, base: null, serializers: { req: requestOf }, stream: inBundles() },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
  };
}

const bundle = { lines: 256, milliseconds: 200 };

/**
 * Standard output, written in bundles: writing each line by itself would cost a sixth of a request, and pino's own
 * `minLength` measures all that it has gathered anew with every line. All is written at every orderly end; what was
 * gathered is lost when the process is killed.
 */
function inBundles(): DestinationStream {
  const output = destination({ fd: 1, sync: false });
  let lines: string[] = [];
  const flush = () => {
    if (lines.length > 0) output.write(lines.join(''));
    lines = [];
  };
  setInterval(flush, bundle.milliseconds).unref();
  process.once('exit', () => {
    flush();
    output.flushSync();
  });
  return {
    write(line) {
      if (lines.push(line) >= bundle.lines) flush();
    },
  };
}

/** The client's `X-Request-Id` when it is a plain one, so that a trace can be followed; a new one otherwise. */
function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  // Whoever sends its key there by mistake must not find it in a log.
  return typeof given === 'string' && acceptableId.test(given) && !given.includes(secretPrefix) ? given : randomUUID();
}

// Neither headers nor the query: keys and other secrets end up there. A key that ended up in the path is cut.
function requestOf({ method, url }: FastifyRequest) {
  const [path = ''] = url.split('?', 1);
  return { method, path: path.includes(secretPrefix) ? path.replaceAll(/ask_\w*/g, `${secretPrefix}...`) : path };
}

/** Logs every answered request and tells the client its id. */
export const requestLog = fastifyPlugin(async (app: FastifyInstance) => {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const ms = Math.round(reply.elapsedTime * 100) / 100;
    request.log.info({ req: request, status: reply.statusCode, ms, key: request.caller?.id }, 'answered');
    done();
  });
});
