import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { Call, Caller } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import {
  anyOf,
  forbidden,
  hasScope,
  type Scope,
  scopeNameOf,
} from '../../scopes.ts';
import type { Authenticator } from './authenticator.ts';
import { hashSecret, hintOf, isSecret } from './secret.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * True for a route that needs no key, or a function that selects such
     * requests.
     */
    public?: boolean | ((request: FastifyRequest) => boolean);
    /**
     * The required scope, checked before the body is read. Default: `write` for
     * methods that write, else `read`, of its module.
     */
    scope?: Scope;
    /** Modules whose scopes open it, too. */
    audiences?: readonly string[];
    /** A route whose clients can log in. */
    leadsToLogin?: boolean;
  }
}

const readMethods = ['GET', 'HEAD', 'OPTIONS', 'QUERY'];

export function mayWrite({ method }: Pick<RouteOptions, 'method'>) {
  const methods = [method].flat();
  return methods.some((one) => !readMethods.includes(one));
}

/**
 * Sets the scope of a route.
 *
 * @param tag of its module, if any
 */
export function requireScope(route: RouteOptions, tag?: string) {
  const usual = mayWrite(route) ? 'write' : 'read';
  const { scope = usual, audiences = [] } = route.config ?? {};
  const isComplete = tag === undefined || scope.includes(':');
  const needed = isComplete ? scope : `${scopeNameOf(tag)}:${scope}`;
  const others = audiences.map((module) => `${module}:${usual}`);
  route.config = { ...route.config, scope: anyOf([needed, ...others]) };
}

/**
 * Authenticates every request, also for unknown routes: sets the caller of
 * its call, or fails with 401, 403 or 429.
 */
export function bearer(app: FastifyInstance, keys: Authenticator) {
  // Callbacks instead of promises, because this runs for every request and
  // most look-ups are cached.
  app.addHook('onRequest', (request, _reply, done) => {
    const { public: isPublic, scope = 'read' } = request.route.config;
    const needsNoKey =
      typeof isPublic === 'function' ? isPublic(request) : isPublic;
    if (needsNoKey) return done();
    const admit = (caller: Caller | null) => {
      request.call.caller = caller;
      if (!caller) done(unauthenticated(keys, request));
      else if (!hasScope(caller, scope)) done(forbidden(scope, caller));
      else done();
    };
    const caller = callerOfRequest(keys, request);
    if (caller instanceof Promise) caller.then(admit, done);
    else admit(caller);
  });
}

/**
 * @throws StoreError UNAUTHENTICATED, TOO_MANY_REQUESTS; Unavailable
 */
export async function authenticate(
  keys: Authenticator,
  request: FastifyRequest,
  call: Call,
) {
  const caller = await callerOfRequest(keys, request, call);
  if (!caller) throw unauthenticated(keys, request);
  return caller;
}

function callerOfRequest(
  keys: Authenticator,
  request: FastifyRequest,
  call = request.call,
) {
  const { secret, hash } = credentialsIn(request);
  if (secret === '') return null;
  return keys.lookUp(secret, request.ip, call, hash);
}

/** What each connection sent last. */
const known = new WeakMap<Socket, ReturnType<typeof hashedIn>>();

/**
 * Most connections send one header again and again. To compare it costs less
 * than to hash its secret.
 */
function credentialsIn(request: FastifyRequest) {
  const { headers, socket } = request;
  const header = Buffer.from(headers.authorization ?? '');
  const last = known.get(socket);
  const isSame =
    last?.header.length === header.length &&
    timingSafeEqual(last.header, header);
  if (isSame) return last;
  const next = hashedIn(request, header);
  known.set(socket, next);
  return next;
}

function hashedIn(request: FastifyRequest, sent: Buffer) {
  const secret = secretIn(request);
  // A copy, because Node keeps small ones together.
  const header = new Uint8Array(sent);
  return { header, secret, hash: hashSecret(secret) };
}

// RFC 6750 section 2.1, with the scheme's case ignored as RFC 9110 section 11.1
// requires.
const credentials = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;

/** Empty without one. */
function secretIn({ headers }: FastifyRequest) {
  const { authorization = '' } = headers;
  const [, secret = ''] = credentials.exec(authorization) ?? [];
  return secret;
}

/**
 * The loggable part of a rejected key; undefined for other text, which may be a
 * password.
 */
export function presentedHint(request: FastifyRequest) {
  const secret = secretIn(request);
  return isSecret(secret) ? hintOf(secret) : undefined;
}

/** The error with the challenge of RFC 6750 section 3. */
function unauthenticated(keys: Authenticator, request: FastifyRequest) {
  const { authorization = '' } = request.headers;
  // A different scheme counts as no key (RFC 6750 section 3.1).
  const isGiven = /^bearer +\S/i.test(authorization);
  const secret = secretIn(request);
  let message = 'An API key is required: Authorization: Bearer <API_KEY>.';
  let challenge = 'Bearer';
  if (isGiven) {
    message = 'The API key is not valid.';
    challenge = 'Bearer error="invalid_token"';
  }
  if (keys.isToken(secret)) message = 'The token is not valid, or has expired.';
  return new StoreError('UNAUTHENTICATED', message, {
    headers: { 'www-authenticate': challenge },
    reason: keys.refusalOf(secret),
  });
}
