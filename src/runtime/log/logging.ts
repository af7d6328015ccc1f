import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyServerOptions, LogController } from 'fastify';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Redactor } from './redact.ts';

const acceptableId = /^[\w.:-]{1,64}$/;

/** What every line has. */
export interface LogBase {
  pid: number;
  host: string;
  /** Absent where one process is the service, and in the parent of workers. */
  worker?: number;
}

/** The log of a process: JSON lines. */
export function createLog(level: string, stream: DestinationStream, base: LogBase): Logger {
  // Without one of ours, Fastify's own would turn `req` into something else.
  return pino({ level, base, serializers: { req: (req) => req, err: errorOf } }, stream);
}

/** Fastify's options for logging: one line per request, each with the request's id. */
export function loggingOptions(log: Logger, redactor: Redactor): FastifyServerOptions {
  return {
    // Also when it is silent: that may change while the service runs.
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: ({ headers }: Pick<IncomingMessage, 'headers'>) => requestId(headers['x-request-id'], redactor),
  };
}

/** The client's `X-Request-Id` when it is plain, so that a trace can be followed; a new one otherwise. */
function requestId(given: string | string[] | undefined, redactor: Redactor): string {
  // A key that a client sends here by mistake must not reach a log.
  return typeof given === 'string' && acceptableId.test(given) && !redactor.hasKey(given) ? given : randomUUID();
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
