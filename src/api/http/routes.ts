import type {
  IncomingHttpHeaders,
  IncomingMessage,
  ServerResponse,
} from 'node:http';
import { Readable } from 'node:stream';
import { parseExactJson } from '@animal-store/exact-json';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifySchema,
  FastifyTypeProvider,
  RawServerDefault,
  RouteOptions,
} from 'fastify';
import type { Static, TObject, TSchema } from 'typebox';
import { deprecationHooks } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { idempotencyHooks } from '../../access/idempotency/idempotency-key.ts';
import { mayWrite, requireScope } from '../../access/keys/bearer.ts';
import { reportFault, StoreError } from '../../errors.ts';
import { SharedBudget } from '../../shared-budget.ts';
import type { Validated } from '../../validation/validator.ts';
import { isRead, prefers, varyBy } from './negotiation.ts';
import { holderOf, largeBodyBytes, smallAnswer, tooMany } from './overload.ts';
import { origin } from './server.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route costs nothing, or charges its work itself. */
    isUnmetered?: boolean;
    /** A POST without input, for which a route needs no schema. */
    takesNoBody?: boolean;
    /** The route validates its input itself. */
    validatesItself?: boolean;
    /** Bytes of an answer, for which there must be room before it runs. */
    mayAnswer?: number;
  }
}

/**
 * Types the validated query strings and bodies of handlers by their schemas.
 * Path parameters stay text.
 */
interface InputTypes extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema
    ? Validated<Static<this['schema']>>
    : never;
}

/** The app to which a module adds its routes, with typed input for handlers. */
export type Routes = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  InputTypes
>;

type Hooks = Pick<RouteOptions, (typeof phases)[number]>;
const phases = ['preParsing', 'preValidation', 'onSend', 'onResponse'] as const;

/**
 * Adds the service's hooks to every route that is registered later. Hooks of
 * one phase run in the order of the list; Fastify validates the input after all
 * `preValidation` hooks.
 *
 * @param describe returns the contract of a route
 */
export function routeHooks(
  app: FastifyInstance,
  usage: DeprecationUsage,
  describe: (route: RouteOptions, app: FastifyInstance) => FastifySchema,
): void {
  const bodies = new SharedBudget(64 * Number(app.initialConfig.bodyLimit));
  parseJsonBodies(app);
  app.addHook('onRoute', function (route) {
    app.allowedMethods.add(route);
    requireScope(route, this.section);
    const hooksInOrder: Hooks[] = [
      bodyHooks(route, bodies),
      roomHooks(route),
      inputHooks(route),
      idempotencyHooks(route),
      deprecationHooks(route, usage, origin),
    ];
    // Fastify's own HEAD hook measures the content, so it must run after the
    // compression.
    if (route.method === 'HEAD' && Array.isArray(route.onSend))
      route.onSend.reverse();
    for (const phase of phases) {
      const hooks = [...hooksInOrder, route]
        .flatMap((one) => one[phase] as unknown)
        .filter(Boolean);
      if (hooks.length > 0) route[phase] = hooks as never;
    }
    if (route.schema) route.schema = describe(route, this);
  });
}

/**
 * Counts large bodies while they arrive. Unauthenticated requests are rejected
 * before.
 */
function bodyHooks({ method }: RouteOptions, budget: SharedBudget): Hooks {
  if ([method].flat().every(isRead)) return {};
  return {
    preParsing(request, reply, payload, done) {
      const { headers, routeOptions } = request;
      const isChunked = headers['transfer-encoding'] !== undefined;
      // A chunked body counts with its maximum size.
      const bytes = Number(headers['content-length'] ?? routeOptions.bodyLimit);
      if (!isChunked && !(bytes > largeBodyBytes)) return done(null, payload);
      const hold = () => {
        const holder = holderOf(request);
        if (!budget.take(holder, bytes)) throw tooMany('bodies');
        reply.raw.once('close', () => budget.add(holder, -bytes));
      };
      const body = Readable.from(counted(payload, hold));
      // Fastify removes its listeners when it rejects the body.
      body.on('error', () => undefined);
      done(null, body);
    },
  };
}

/**
 * Refuses what may write before it runs, while its key has too many answers
 * unread.
 */
function roomHooks(route: RouteOptions): Hooks {
  if (!mayWrite(route)) return {};
  const { mayAnswer = smallAnswer } = route.config ?? {};
  return {
    preValidation(request, reply, done) {
      request.server.unread.hold(request, reply, mayAnswer);
      done();
    },
  };
}

/**
 * Passes the bytes on. @param onLarge called when they exceed the small size
 */
async function* counted(payload: Readable, onLarge: () => void) {
  let arrived = 0;
  // Ending the stream must not destroy the connection, which the response
  // needs.
  for await (const chunk of payload.iterator({
    destroyOnReturn: false,
  }) as AsyncIterable<Buffer>) {
    const before = arrived;
    arrived += chunk.length;
    if (before <= largeBodyBytes && arrived > largeBodyBytes) onLarge();
    yield chunk;
  }
}

/** Parses the JSON bodies of both APIs with exact integers. */
function parseJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    ({ headers, call }, body, done) => {
      call.restart();
      try {
        assertPlainUtf8(headers);
        done(null, body.length === 0 ? undefined : parseJson(body));
      } catch (error) {
        done(error as Error);
      }
    },
  );
}

/**
 * @param subject of the error message @throws StoreError BAD_USER_INPUT: not
 *   UTF-8 or not JSON
 */
export function parseJson(body: Buffer, subject = 'The body is'): unknown {
  try {
    return parseExactJson(body);
  } catch (cause) {
    const { message } = cause as Error;
    throw new StoreError(
      'BAD_USER_INPUT',
      `${subject} not acceptable JSON: ${message}.`,
      { cause },
    );
  }
}

/** A `Content-Type` without a charset but UTF-8 outside of quoted strings. */
const utf8 =
  /^(?:"(?:\\.|[^"\\])*(?:"|$)|(?!;\s*charset\s*=(?!\s*(?:(?:utf-?8)?|"(?:utf-?8)?")\s*(?:;|$)))[^"])*$/i;

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders): void {
  const {
    'content-type': type = '',
    'content-encoding': coding = '',
    'transfer-encoding': transfer = '',
  } = headers;
  if (!utf8.test(type)) {
    const message = 'The body must be UTF-8, the one charset of JSON.';
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message);
  }
  const isPlain =
    /^(?:identity\b|[\s,])*$/i.test(coding) && /^(?:chunked)?$/i.test(transfer);
  if (isPlain) return;
  const message =
    'The body must not be compressed: send it without Content-Encoding.';
  // RFC 9110 section 12.5.3
  throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message, {
    headers: { 'accept-encoding': 'identity' },
  });
}

/** How many unknown parameters the log names. */
const mostUnknown = 5;

/**
 * Removes the query or body for which a route has no schema, so that no handler
 * gets unvalidated input. Fastify validates the others later (`buildValidator`
 * in server.ts).
 *
 * Refuses query parameters that a route lacks, for a client with `Prefer:
 * handling=strict` (RFC 7240, section 4.4): without a misspelt filter the
 * answer would be the whole list. The log names them for all.
 *
 * @throws Error for a route that takes a body without a schema
 */
function inputHooks({ url, method, schema, config }: RouteOptions): Hooks {
  if (config?.validatesItself) return {};
  const { body: bodySchema, querystring } = schema ?? {};
  const bodiless = ['GET', 'HEAD', 'OPTIONS', 'DELETE'];
  const takesBody = [method].flat().some((one) => !bodiless.includes(one));
  const takesNone = config?.takesNoBody || method === 'DELETE';
  if (takesBody && !takesNone && !bodySchema)
    reportFault(`${method} ${url} needs a schema for its body.`);
  const { properties = {} } = (querystring ?? {}) as Partial<TObject>;
  const refuse = (message: string) => new StoreError('BAD_USER_INPUT', message);
  return {
    preValidation(request, reply, done) {
      const { headers, query, body, call } = request;
      const { prefer } = headers;
      const unknown = Object.keys(query as object).filter(
        (name) => !Object.hasOwn(properties, name),
      );
      if (unknown.length > 0) call.unknown = unknown.slice(0, mostUnknown);
      if (prefer && prefers(prefer, 'handling', 'strict')) {
        varyBy(reply, 'Prefer');
        const faults = unknown.map((name) => `${name} is unknown`);
        if (faults.length > 0) return done(refuse(`${faults.join('; ')}.`));
        reply.header('preference-applied', 'handling=strict');
      }
      if (!querystring) request.query = {};
      if (bodySchema) return done();
      request.body = undefined;
      // A client that sends a version in a body expects it to be compared.
      const isUnwanted = takesNone && body != null;
      done(isUnwanted ? refuse('This operation takes no body.') : undefined);
    },
  };
}
