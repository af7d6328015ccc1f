import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import { type DestinationStream, type Logger, pino } from 'pino';
import { secretPrefix } from '../keys/secret.ts';

const acceptableId = /^[\w.:-]{1,64}$/;

/**
 * The log of a process: JSON lines.
 *
 * @param stream standard output when absent, one write per line
 * @param worker the number of the worker, for each line; none where one process is the service
 */
export function createLog(level: string, stream: DestinationStream = process.stdout, worker?: number): Logger {
  return pino({ level, base: worker ? { worker } : null, serializers: { req: requestOf, err: errorOf } }, stream);
}

/** Fastify's options for logging: one line per request, each with the request's id. */
export function loggingOptions(log: Logger): FastifyServerOptions {
  return {
    // Fastify's own logger does nothing at all.
    ...(log.level === 'silent' ? { logger: false } : { loggerInstance: log }),
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
  };
}

/** The client's `X-Request-Id` when it is plain, so that a trace can be followed; a new one otherwise. */
function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  // A key that a client sends here by mistake must not reach a log.
  return typeof given === 'string' && acceptableId.test(given) && !given.includes(secretPrefix) ? given : randomUUID();
}

const longestPath = 256;
const key = new RegExp(`${secretPrefix}\\w*`, 'g');

// Without headers and query, where keys and other secrets end up. A key in the path is cut.
function requestOf({ method, url }: FastifyRequest) {
  const [path = ''] = url.slice(0, longestPath).split('?', 1);
  const plain = path.includes('%') ? decoded(path) : path;
  return { method, path: plain.includes(secretPrefix) ? plain.replaceAll(key, `${secretPrefix}...`) : path };
}

/** A key in the path may be percent-encoded. */
function decoded(path: string): string {
  return path.replace(/%([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Without what drivers attach to an error: Redis's failed command may contain its password. */
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
