import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { parseExactJson } from '@animal-store/exact-json';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  FastifyTypeProvider,
  preParsingHookHandler,
  preValidationHookHandler,
  RawServerDefault,
  RouteOptions,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import { StoreError } from '../../errors.ts';
import type { Validated } from '../../validation/validator.ts';
import { largeBodyBytes, type MemoryBudget } from './memory-budget.ts';
import { isRead } from './negotiation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route validates its input itself. */
    validatesItself?: boolean;
  }
}

/** Types the validated query strings and bodies of handlers by their schemas. Path parameters stay text. */
interface InputTypes extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Validated<Static<this['schema']>> : never;
}

/** The app to which a module adds its routes, with typed input for handlers. */
export type Routes = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, InputTypes>;

/** Counts large bodies while they arrive. Unauthenticated requests are rejected before. */
export function bodyHooks({ method }: RouteOptions, budget: MemoryBudget): { preParsing?: preParsingHookHandler } {
  if ([method].flat().every(isRead)) return {};
  return {
    preParsing({ headers, routeOptions }, reply, payload, done) {
      // A chunked body counts with its maximum size.
      const length = Number(headers['content-length'] ?? routeOptions.bodyLimit);
      if (headers['transfer-encoding'] === undefined && !(length > largeBodyBytes)) return done(null, payload);
      const body = Readable.from(counted(payload, () => budget.hold(length, reply.raw)));
      // Fastify removes its listeners when it rejects the body.
      body.on('error', () => undefined);
      done(null, body);
    },
  };
}

/** Passes the bytes on. @param onLarge called when they exceed the small size */
async function* counted(payload: Readable, onLarge: () => void) {
  let arrived = 0;
  // Ending the stream must not destroy the connection, which the response needs.
  for await (const chunk of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const before = arrived;
    arrived += chunk.length;
    if (before <= largeBodyBytes && arrived > largeBodyBytes) onLarge();
    yield chunk;
  }
}

/** Parses the JSON bodies of both APIs with exact integers. */
export function parseJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const parser = async ({ headers, call }: FastifyRequest, body: Buffer) => {
    call.restart();
    assertPlainUtf8(headers);
    return body.length === 0 ? undefined : parseJson(body);
  };
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parser);
}

/** @param subject of the error message @throws StoreError BAD_USER_INPUT: not UTF-8 or not JSON */
export function parseJson(body: Buffer, subject = 'The body is'): unknown {
  try {
    return parseExactJson(body);
  } catch (cause) {
    const { message } = cause as Error;
    throw new StoreError('BAD_USER_INPUT', `${subject} not acceptable JSON: ${message}.`, { cause });
  }
}

const foreignCharset = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders): void {
  if (foreignCharset.test(headers['content-type'] ?? '')) {
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', 'The body must be UTF-8, the one charset of JSON.');
  }
  const isCompressed = !/^(?:identity)?$/i.test(headers['content-encoding'] ?? '');
  if (isCompressed || !/^(?:chunked)?$/i.test(headers['transfer-encoding'] ?? '')) {
    const message = 'The body must not be compressed: send it without Content-Encoding.';
    // RFC 9110 section 12.5.3
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message, { headers: { 'accept-encoding': 'identity' } });
  }
}

/**
 * Removes the query or body for which a route has no schema, so that no handler gets unvalidated input. Fastify
 * validates the others later (`buildValidator` in server.ts).
 *
 * @throws Error for a route that takes a body without a schema
 */
export function dropUnvalidatedInput({ url, method, schema, config }: RouteOptions): {
  preValidation?: preValidationHookHandler;
} {
  if (config?.validatesItself) return {};
  const takesBody = [method].flat().some((one) => !['GET', 'HEAD', 'OPTIONS', 'DELETE'].includes(one));
  if (takesBody && !schema?.body) throw new Error(`${method} ${url} needs a schema for its body.`);
  // Fastify parses no body of a GET or HEAD.
  if (schema?.querystring && (schema.body || [method].flat().every(isRead))) return {};
  return {
    preValidation(request, _reply, done) {
      if (!schema?.querystring) request.query = {};
      if (!schema?.body) request.body = undefined;
      done();
    },
  };
}
