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
  FastifyRequest,
  FastifySchema,
  FastifyTypeProvider,
  RawServerDefault,
  RouteOptions,
} from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Static, TObject, TSchema } from 'typebox';
import { deprecationHooks } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { idempotencyHooks } from '../../access/idempotency/idempotency-key.ts';
import { mayWrite, requireScope } from '../../access/keys/bearer.ts';
import { reportFault, StoreError } from '../../errors.ts';
import { SharedBudget } from '../../shared-budget.ts';
import type { Validated } from '../../validation/validator.ts';
import { prefers, utf8 } from './fields.ts';
import { isRead } from './negotiation.ts';
import { largeBodyBytes } from './overload.ts';
import { origin } from './server.ts';
import { holderOf, smallAnswer, tooMany } from './unread.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route costs nothing, or charges its work itself. */
    isUnmetered?: boolean;
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

interface RouteHooksOptions {
  usage: DeprecationUsage;
  /** @returns the contract of a route */
  describe(route: RouteOptions, app: FastifyInstance): FastifySchema;
}

type Hooks = Pick<
  RouteOptions,
  'preParsing' | 'preValidation' | 'onSend' | 'onResponse'
>;
const phases = ['preParsing', 'preValidation', 'onSend', 'onResponse'] as const;

/**
 * Adds the service's hooks to every route that is registered later. Hooks of
 * one phase run in the order of the list; Fastify validates the input after all
 * `preValidation` hooks.
 */
export const routeHooks = fastifyPlugin<RouteHooksOptions>(
  async (app: FastifyInstance, { usage, describe }) => {
    const bodies = new SharedBudget(64 * Number(app.initialConfig.bodyLimit));
    parseJsonBodies(app);
    app.addHook('onRoute', function (route) {
      app.allowedMethods.add(route);
      requireScope(route);
      const hooksInOrder: Hooks[] = [
        bodyHooks(route, bodies),
        roomHooks(route),
        refuseUnknownParameters(route),
        dropUnvalidatedInput(route),
        idempotencyHooks(route),
        deprecationHooks(route, usage, origin),
      ];
      // Fastify's own HEAD hook measures the content, so it must run after the
      // compression.
      if (route.method === 'HEAD' && Array.isArray(route.onSend))
        route.onSend.reverse();
      for (const phase of phases) {
        const hooks = [
          ...hooksInOrder.map((hooks) => hooks[phase]),
          route[phase],
        ]
          .flat()
          .filter((hook) => hook !== undefined);
        if (hooks.length > 0) route[phase] = hooks as never;
      }
      if (route.schema) route.schema = describe(route, this);
    });
  },
  { name: 'routeHooks', dependencies: ['addresses'] },
);

/**
 * Counts large bodies while they arrive. Unauthenticated requests are rejected
 * before.
 */
function bodyHooks(
  { method }: RouteOptions,
  budget: SharedBudget,
): Pick<RouteOptions, 'preParsing'> {
  if ([method].flat().every(isRead)) return {};
  return {
    preParsing(request, reply, payload, done) {
      const { headers, routeOptions } = request;
      // A chunked body counts with its maximum size.
      const length = Number(
        headers['content-length'] ?? routeOptions.bodyLimit,
      );
      if (
        headers['transfer-encoding'] === undefined &&
        !(length > largeBodyBytes)
      )
        return done(null, payload);
      const hold = () => {
        const holder = holderOf(request);
        if (!budget.take(holder, length)) throw tooMany('bodies');
        reply.raw.once('close', () => budget.add(holder, -length));
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
function roomHooks(route: RouteOptions): Pick<RouteOptions, 'preValidation'> {
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
  const parser = async ({ headers, call }: FastifyRequest, body: Buffer) => {
    call.restart();
    assertPlainUtf8(headers);
    return body.length === 0 ? undefined : parseJson(body);
  };
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parser);
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

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders): void {
  if (!utf8.test(headers['content-type'] ?? '')) {
    throw new StoreError(
      'UNSUPPORTED_MEDIA_TYPE',
      'The body must be UTF-8, the one charset of JSON.',
    );
  }
  const isCompressed = !/^(?:identity\b|[\s,])*$/i.test(
    headers['content-encoding'] ?? '',
  );
  if (
    isCompressed ||
    !/^(?:chunked)?$/i.test(headers['transfer-encoding'] ?? '')
  ) {
    const message =
      'The body must not be compressed: send it without Content-Encoding.';
    // RFC 9110 section 12.5.3
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message, {
      headers: { 'accept-encoding': 'identity' },
    });
  }
}

/**
 * Refuses query parameters that a route lacks, for a client with `Prefer:
 * handling=strict` (RFC 7240, section 4.4): without a misspelt filter the answer
 * would be the whole list.
 */
function refuseUnknownParameters({ schema, config }: RouteOptions): Hooks {
  if (config?.validatesItself) return {};
  const { properties = {} } = (schema?.querystring ?? {}) as Partial<TObject>;
  return {
    preValidation({ headers, query }, _reply, done) {
      const { prefer } = headers;
      if (!prefer || !prefers(prefer, 'handling', 'strict')) return done();
      const faults = Object.keys(query as object)
        .filter((name) => !Object.hasOwn(properties, name))
        .map((name) => `${name} is unknown`);
      if (faults.length === 0) return done();
      done(new StoreError('BAD_USER_INPUT', `${faults.join('; ')}.`));
    },
  };
}

/**
 * Removes the query or body for which a route has no schema, so that no handler
 * gets unvalidated input. Fastify validates the others later (`buildValidator`
 * in server.ts).
 *
 * @throws Error for a route that takes a body without a schema
 */
function dropUnvalidatedInput({
  url,
  method,
  schema,
  config,
}: RouteOptions): Pick<RouteOptions, 'preValidation'> {
  if (config?.validatesItself) return {};
  const takesBody = [method]
    .flat()
    .some((one) => !['GET', 'HEAD', 'OPTIONS', 'DELETE'].includes(one));
  if (takesBody && !schema?.body)
    reportFault(`${method} ${url} needs a schema for its body.`);
  // Fastify parses no body of a GET or HEAD.
  if (schema?.querystring && (schema.body || [method].flat().every(isRead)))
    return {};
  return {
    preValidation(request, _reply, done) {
      // A client that sends a version in a body expects it to be compared.
      const hasUnwantedBody =
        request.method === 'DELETE' && !schema?.body && request.body != null;
      if (!schema?.querystring) request.query = {};
      if (!schema?.body) request.body = undefined;
      done(
        hasUnwantedBody
          ? new StoreError('BAD_USER_INPUT', 'This operation takes no body.')
          : undefined,
      );
    },
  };
}
