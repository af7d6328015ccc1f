import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { ApiKeyService } from './api-key.service.ts';
import type { FailureLimit } from './failure-limit.ts';
import type { Caller } from './key-lookup.ts';
import { forbidden, hasScope } from './scope.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose key the request carries; null only on public routes. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** Needs no key; or only for the requests that the function picks. */
    public?: boolean | ((request: FastifyRequest) => boolean);
    /** The scope a key needs here, `read` unless stated. Checked before the body is looked at. */
    scope?: KeyScope;
  }
}

export interface BearerOptions {
  keys: ApiKeyService;
  failures: FailureLimit;
}

/** Guards every route, unknown ones included, of every face: adds `request.caller`, or fails with 401, 403 or 429. */
export const bearer = fastifyPlugin<BearerOptions>(async (app, options) => {
  app.decorateRequest('caller', null);
  // Callbacks rather than promises: most keys were looked up a moment ago, and this runs for every request.
  app.addHook('onRequest', (request, _reply, done) => {
    const { public: open } = request.routeOptions.config;
    if (open === true || (typeof open === 'function' && open(request))) return done();
    const recalled = recall(options.keys, request);
    if (recalled) return admit(request, recalled, done);
    authenticate(options, request).then((caller) => admit(request, caller, done), done);
  });
});

function admit(request: FastifyRequest, caller: Caller, done: (error?: Error) => void): void {
  request.caller = caller;
  const { scope } = request.routeOptions.config;
  if (scope && !hasScope(caller, scope)) done(forbidden(scope));
  else done();
}

/** The caller, if it is known without a look-up. */
function recall(keys: ApiKeyService, { headers, ip }: FastifyRequest): Caller | null | undefined {
  const secret = credentials.exec(headers.authorization ?? '')?.[1];
  return secret === undefined ? null : keys.recall(secret, ip);
}

// RFC 6750 section 2.1, with the scheme's case ignored as RFC 9110 section 11.1 asks.
const credentials = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;

/** @throws StoreError UNAUTHENTICATED with the challenge of RFC 6750 section 3; TOO_MANY_REQUESTS */
export async function authenticate({ keys, failures }: BearerOptions, request: FastifyRequest): Promise<Caller> {
  const { authorization } = request.headers;
  // Another scheme gives no key at all (RFC 6750 section 3.1).
  if (!authorization || !/^bearer +\S/i.test(authorization)) {
    throw unauthenticated('Bearer', 'An API key is required: Authorization: Bearer <API_KEY>.');
  }
  const secret = credentials.exec(authorization)?.[1];
  const caller = secret === undefined ? null : await lookUp({ keys, failures }, secret, request);
  if (caller) return caller;
  throw unauthenticated('Bearer error="invalid_token"', 'The API key is not valid.');
}

/** Only what costs a look-up, or may be a guess at the bootstrap key, is limited, and counts when it fails. */
async function lookUp({ keys, failures }: BearerOptions, secret: string, request: FastifyRequest) {
  const { ip, call } = request;
  const recalled = keys.recall(secret, ip);
  if (recalled !== undefined) return recalled;
  if (keys.wasGood(secret)) return keys.authenticate(secret, ip, call);
  return failures.lookUp(
    ip,
    secret,
    () => keys.recall(secret, ip),
    () => keys.authenticate(secret, ip, call),
  );
}

function unauthenticated(challenge: string, message: string): StoreError {
  return new StoreError('UNAUTHENTICATED', message, { headers: { 'www-authenticate': challenge } });
}
