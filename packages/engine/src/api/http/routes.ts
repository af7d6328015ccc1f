import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  FastifyTypeProvider,
  preParsingHookHandler,
  RawServerDefault,
  RouteOptions,
} from 'fastify';
import createRouter from 'find-my-way';
import type { Static, TObject, TSchema } from 'typebox';
import { idempotencyHooks } from '../../access/idempotency/idempotency-key.ts';
import { mayWrite, requireScope } from '../../access/keys/bearer.ts';
import { badInput, reportFault, StoreError } from '../../errors.ts';
import { unwrapped } from '../../validation/rules.ts';
import {
  mostNamed,
  unknownIn,
  type Validated,
  validator,
} from '../../validation/validator.ts';
import { boundBodies, parseJsonBodies } from './bodies.ts';
import { nothingHere } from './failures.ts';
import { smallAnswer } from './lifecycle.ts';
import { offerTrial, preferencesIn, prefers, varyBy } from './negotiation.ts';

// Which route a request has, and what Fastify checks before its handler.

declare module 'fastify' {
  interface FastifyInstance {
    allowedMethods: AllowedMethods;
  }
  interface FastifyContextConfig {
    /** The route costs nothing, or charges its work itself. */
    isUnmetered?: boolean;
    /** A POST without input, for which a route needs no schema. */
    takesNoBody?: boolean;
    /** The route validates its input itself. */
    validatesItself?: boolean;
    /**
     * Its `Prefer: tx=rollback` is told in the contract: all that it writes is
     * of `Records`. An idempotent one has it.
     */
    isTried?: boolean;
    /** Bytes of an answer, for which there must be room before it runs. */
    mayAnswer?(request: FastifyRequest): number;
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

export const maxHeaderSize = 16_384;
/** Requests with an undecodable path. */
const unreadable = new WeakSet<IncomingMessage>();

/** Fastify's options for addresses and input. */
export const routingOptions = {
  // The longest path parameter is an int64; longer ones, up to the size of a
  // header section, get 404.
  routerOptions: { maxParamLength: maxHeaderSize },
  // `//` has no route. The router ignores the first character of a path: `*`
  // (RFC 9112 section 3.2.4) would be `/`.
  rewriteUrl(raw: IncomingMessage) {
    const { url = '*' } = raw;
    return url.startsWith('*') || unreadable.has(raw) ? '//' : url;
  },
  // An undecodable path would pass no hook, so it is routed like an unknown
  // one.
  frameworkErrors(
    _error: unknown,
    { raw, server }: FastifyRequest,
    reply: FastifyReply,
  ) {
    unreadable.add(raw);
    server.routing(raw, reply.raw);
  },
  schemaController: {
    compilersFactory: { buildValidator: buildValidator as never },
  },
};

/**
 * Makes Fastify validate input with `validator`, so that a schema means the
 * same as in OpenAPI.
 */
function buildValidator() {
  return ({ schema, httpPart }: { schema: TObject; httpPart?: string }) => {
    // Routes answer an invalid path parameter with 404, and headers are checked
    // where they are read.
    if (httpPart === 'params' || httpPart === 'headers') return () => true;
    const check = validator(schema, { isLenient: httpPart !== 'body' });
    return (input: unknown) => {
      try {
        return { value: check(input) };
      } catch (error) {
        return { error };
      }
    };
  };
}

/** False for an object, JSON, and an array of them. */
function isOfQuery(schema: TSchema): boolean {
  const { items, type = 'object' } = unwrapped(schema).member;
  return items ? isOfQuery(items) : type !== 'object';
}

/** The methods of each path, which Fastify's router cannot list. */
class AllowedMethods {
  /** Those of a path are kept with its `OPTIONS`. */
  readonly #router = createRouter();
  /** The methods of all paths. */
  readonly all = new Set(['OPTIONS']);

  add({ url, method }: Pick<RouteOptions, 'url' | 'method'>) {
    if (url === '*') return;
    if (!this.#router.hasRoute('OPTIONS', url))
      this.#router.on('OPTIONS', url, () => undefined, new Set(['OPTIONS']));
    const { store } = this.#router.findRoute('OPTIONS', url) ?? {};
    for (const one of [method].flat()) {
      this.all.add(one);
      store.add(one);
    }
  }

  /** @returns none for an unknown path */
  of({ raw: { url = '/' } }: FastifyRequest): string[] {
    return [...(this.#router.find('OPTIONS', url)?.store ?? [])].sort();
  }
}

/**
 * Rejects requests without exactly one valid host (RFC 9112, section 3.2): by
 * default Node rejects only a missing one, without a body. Answers requests
 * without a route. Their body is not read, so errors in it do not matter.
 */
export function requireKnownAddress(app: FastifyInstance) {
  app.decorate('allowedMethods', new AllowedMethods());
  app.setNotFoundHandler(answerNotFound);
  let valid: string | undefined;
  app.addHook('onRequest', (request, reply, done) => {
    const { headers, httpVersion } = request.raw;
    const { host: named } = headers;
    const isMissing = named === undefined && httpVersion === '1.1';
    // Most requests name the host of the last one.
    const isValid = named === valid || isHost(named ?? '');
    if (isMissing || !isValid) throw badInput(badHost);
    valid = named;
    if (request.is404) answerNotFound(request, reply);
    else done();
  });
}

export const badHost =
  'The request must have one Host header: a name or address, and a port.';

/**
 * A name has at most 253 characters (RFC 1035 section 2.3.4). Parsing one of
 * thousands takes milliseconds.
 */
const host = /^(?:[\w.-]{0,253}|\[[\da-f:.]{2,45}\])(?::\d{0,5})?$/i;

/**
 * True for a name or address with an optional port. Rejects invalid addresses:
 * 999.1.1.1, [::::].
 */
export function isHost(text: string) {
  const isAddress = /^[\d[]|\.\d/.test(text);
  return host.test(text) && (!isAddress || URL.canParse(`http://${text}`));
}

/**
 * 404 for unknown paths, and 405 with `Allow` (RFC 9110 section 15.5.6) for
 * known ones; OPTIONS lists methods.
 */
export function answerNotFound(request: FastifyRequest, reply: FastifyReply) {
  const { method } = request;
  const methods = request.server.allowedMethods.of(request);
  const allow = methods.join(', ');
  const isKnown = methods.length > 0;
  if (isKnown && method === 'OPTIONS')
    return reply.code(204).header('allow', allow).send();
  // `lifecycle` adds `Allow` to every 405.
  if (isKnown && !methods.includes(method))
    throw new StoreError(
      'METHOD_NOT_ALLOWED',
      `${method} is not possible here. Allowed: ${allow}.`,
    );
  // A route may call this too, for example for a missing file.
  throw nothingHere();
}

type Hooks = Pick<RouteOptions, (typeof phases)[number]>;
const phases = ['preParsing', 'preValidation', 'onSend', 'onResponse'] as const;

/**
 * Adds the service's hooks to every route that is registered later. Hooks of
 * one phase run in the order of the list; Fastify validates the input after all
 * `preValidation` hooks.
 *
 * @param describe returns the contract of a route
 * @param lastHooks the hooks that a route runs after the others
 */
export function routeHooks(
  app: FastifyInstance,
  describe: (route: RouteOptions, app: FastifyInstance) => FastifySchema,
  lastHooks: (route: RouteOptions) => Hooks,
) {
  parseJsonBodies(app);
  const preParsing = boundBodies(Number(app.initialConfig.bodyLimit));
  app.addHook('onRoute', function (route) {
    app.allowedMethods.add(route);
    requireScope(route, this.section);
    const hooksInOrder: Hooks[] = [
      roomHooks(route, preParsing),
      inputHooks(route),
      idempotencyHooks(route),
      lastHooks(route),
    ];
    // The hook of Fastify's `exposeHeadRoutes`, which sets Content-Length, must
    // run after the compression.
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
 * For routes that may write: limits the body, and refuses the request while its
 * key has too many unread answers.
 */
function roomHooks(
  route: RouteOptions,
  preParsing: preParsingHookHandler,
): Hooks {
  if (!mayWrite(route)) return {};
  const { mayAnswer } = route.config ?? {};
  return {
    preParsing,
    preValidation(request, reply, done) {
      const bytes = mayAnswer?.(request) ?? smallAnswer;
      request.server.unread.hold(request, reply, bytes);
      done();
    },
  };
}

/** How many unknown parameters the log names. */
const mostUnknown = 5;

const knownPreferences = ['handling=strict', 'handling=lenient', 'count=exact'];

/**
 * Removes the query or body for which a route has no schema, so that no handler
 * gets unvalidated input. Fastify validates the others later
 * (`buildValidator`).
 *
 * Refuses what a route lacks, for a client with `Prefer: handling=strict` (RFC
 * 7240, section 4.4): without a misspelt filter the answer would be the whole
 * list. The log names the parameters for all.
 *
 * @throws Error for a route that takes a body without a schema
 */
function inputHooks(route: RouteOptions): Hooks {
  const { url, method, schema = {}, config = {} } = route;
  if (config.validatesItself) return {};
  const { body: bodySchema, querystring } = schema;
  const takesNone = config.takesNoBody || method === 'DELETE';
  if (mayWrite(route) && !takesNone && !bodySchema)
    reportFault(`${method} ${url} needs a schema for its body.`);
  const { properties = {} } = (querystring ?? {}) as Partial<TObject>;
  for (const [name, member] of Object.entries(properties))
    if (!isOfQuery(member))
      reportFault(`${url} cannot have ${name} in a query string.`);
  const names = new Set(Object.keys(properties));
  const isUnknown = (name: string) => !names.has(name);
  const isWrite = mayWrite(route);
  const known = [...knownPreferences, ...(isWrite ? ['tx=rollback'] : [])];
  return {
    preValidation(request, reply, done) {
      const { call, query, body } = request;
      const { prefer } = request.headers;
      const unknown = Object.keys(query as object).filter(isUnknown);
      if (unknown.length > 0) call.unknown = unknown.slice(0, mostUnknown);
      if (prefers(prefer, 'handling', 'strict')) {
        varyBy(reply, 'Prefer');
        const inBody = bodySchema ? unknownIn(bodySchema as TSchema, body) : [];
        const preferences = preferencesIn(prefer).filter(
          (one) => !known.includes(one),
        );
        const all = [...unknown, ...inBody, ...preferences];
        const named = all.slice(0, mostNamed);
        const faults = named.map((name) => `${name} is unknown`);
        if (faults.length > 0) return done(badInput(`${faults.join('; ')}.`));
        reply.header('preference-applied', 'handling=strict');
      }
      if (isWrite) offerTrial(request, reply);
      if (!querystring) request.query = {};
      if (bodySchema) return done();
      request.body = undefined;
      // A client that sends a version in a body expects it to be compared.
      if (takesNone && body != null)
        return done(badInput('This operation takes no body.'));
      done();
    },
  };
}
