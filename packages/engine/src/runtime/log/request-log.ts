import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Redactor } from '@animal-store/log/redactor';
import {
  type FastifyBaseLogger,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import { once } from '../../once.ts';
import type { RequestObserver } from '../observers.ts';
import type { Log } from './log.ts';

const longestUserAgent = 128;
const plainName = /^\w{1,64}$/;

const acceptableId = /^[\w.:-]{1,64}$/;

/**
 * Fastify's options for logging: one line per request, each with the request's
 * id.
 */
export function loggingOptions(
  { logger }: Log,
  redactor: Redactor,
): FastifyServerOptions {
  return {
    // Even for the level `silent`, because the level may change while the
    // service runs.
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    // Keeps the client's `X-Request-Id` unless it has unusual characters or
    // contains an API key.
    genReqId({ headers }: Pick<IncomingMessage, 'headers'>) {
      const given = headers['x-request-id'];
      if (typeof given !== 'string' || !acceptableId.test(given))
        return randomUUID();
      return redactor.hasSecret(given) ? randomUUID() : given;
    },
  };
}

/** Each request has a child, which few use: it is made when it is used. */
export function makeChildrenLate(log: FastifyBaseLogger) {
  const { child } = log;
  log.child = (...bindings) => {
    const own = once(() =>
      Object.assign(child.apply(log, bindings), { child }),
    );
    return new Proxy(log, {
      get: (_, name) => Reflect.get(own(), name),
      set: (_, name, value) => Reflect.set(own(), name, value),
    });
  };
}

/**
 * Writes one line per request; for successful requests, only the configured
 * share. It builds the JSON itself, because a line is a large part of what a
 * small request costs.
 *
 * @param hintOf returns the part of the client's key that may be logged
 */
export function requestLog(
  log: Log,
  redactor: Redactor,
  hintOf: (request: FastifyRequest) => string | undefined,
): RequestObserver {
  // Clients choose the operation name freely.
  const isPlain = (name: string | undefined) =>
    name !== undefined && plainName.test(name) && !redactor.hasSecret(name);

  /** Most clients are one of a few programs. */
  const userAgents = new LRUCache<string, string>({
    max: 100,
    memoMethod: (text) => quoted(redactor.redact(text, longestUserAgent)),
  });
  // The path of a route without parameters contains nothing of the client.
  const pathOf = ({ originalUrl, route: { url } }: FastifyRequest) => {
    const [path = ''] = originalUrl.split('?', 1);
    return path === url ? path : redactor.redactPath(originalUrl);
  };

  return {
    ended(request, reply, { milliseconds, isAnswered, api, id }) {
      if (!log.logger.isLevelEnabled('info')) return;
      const { method, headers, call } = request;
      const { statusCode: status } = reply;
      const { sample } = log;
      const isOrdinary = isAnswered && !call.cut && call.code === undefined;
      const mayBeLeftOut = sample < 1 && isOrdinary && status < 400;
      if (mayBeLeftOut && Math.random() >= sample) return;

      const { caller, traceId, operation, code, reason } = call;
      const { waited, batch, details } = call;
      const address = addressOf(request);
      const userAgent = headers['user-agent'];
      const hasRefusedKey = !caller && status >= 400;
      const keyHint = hasRefusedKey ? hintOf(request) : caller?.hint;
      const isNamed = id === undefined && isPlain(operation?.name);
      const name = isNamed ? operation?.name : id;
      const hasBody = isAnswered && method !== 'HEAD';
      const bytes = reply.getHeader('content-length');

      // Node knows the methods, and `genReqId` accepts the ids. Every other text
      // is quoted, also one that could need no escaping.
      let line = `{"level":30,"time":${Date.now()}${log.base},"reqId":"${request.id}"`;
      if (traceId) line += `,"traceId":${quoted(traceId)}`;
      line += `,"req":{"method":"${method}","path":${quoted(pathOf(request))}}`;
      if (address) line += `,"address":${quoted(address)}`;
      if (userAgent) line += `,"userAgent":${userAgents.memo(userAgent)}`;
      if (caller) line += `,"key":${caller.id}`;
      if (keyHint) line += `,"keyHint":${quoted(keyHint)}`;
      line += `,"api":"${api}"`;
      if (name) line += `,"operation":${quoted(name)}`;
      if (operation?.fieldNames)
        line += `,"fields":[${operation.fieldNames.map(quoted)}]`;
      if (isAnswered) line += `,"status":${status}`;
      if (code) line += `,"code":${quoted(code)}`;
      const unknown = call.unknown?.filter(isPlain);
      if (unknown?.length) line += `,"unknown":[${unknown.map(quoted)}]`;
      if (reason) line += `,"reason":${quoted(reason)}`;
      line += `,"ms":${rounded(milliseconds)}`;
      if (waited !== undefined) line += `,"queueMs":${rounded(waited)}`;
      if (batch !== undefined) line += `,"batch":${batch}`;
      if (call.streamedAfter !== undefined) line += `,"items":${call.items}`;
      if (hasBody && bytes !== undefined) line += `,"bytes":${Number(bytes)}`;
      if (method === 'POST' && reply.hasHeader('idempotent-replayed'))
        line += ',"replayed":true';
      if (call.cut) line += `,"cut":"${call.cut}"`;
      if (mayBeLeftOut) line += `,"sample":${sample}`;
      if (details)
        line += `,"details":${redactor.withoutSecrets(JSON.stringify(details))}`;
      let message = isAnswered ? 'answered' : 'aborted by the client';
      if (call.cut) message = 'cut off';
      log.stream.write(`${line},"msg":"${message}"}\n`);
    },
  };
}

const unescaped = /^[ !#-[\]-~]*$/;

/** As JSON. Most texts need no escaping, which takes four times as long. */
function quoted(text: string) {
  return unescaped.test(text) ? `"${text}"` : JSON.stringify(text);
}

function rounded(milliseconds: number) {
  return Math.round(milliseconds * 100) / 100;
}

/**
 * The client's IP address without its zone (`fe80::1%eth0`); undefined when a
 * proxy sent an invalid one.
 */
export function addressOf({ ip }: { ip: string }) {
  if (isIP(ip) === 0) return undefined;
  return ip.replace(/%.*/, '');
}
