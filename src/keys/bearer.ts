import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { ApiKeyService } from './api-key.service.ts';
import type { FailureLimit } from './failure-limit.ts';
import type { Caller } from './key-lookup.ts';
import { assertScope } from './scope.ts';

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
  app.addHook('onRequest', async (request) => {
    const { public: open, scope } = request.routeOptions.config;
    if (open === true || (typeof open === 'function' && open(request))) return;
    request.caller = await authenticate(options, request);
    if (scope) assertScope(request.caller, scope);
  });
});

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
  const recalled = secret === undefined ? null : keys.recall(secret);
  if (recalled) return recalled;
  await failures.check(request.ip);
  const caller = secret && recalled === undefined ? await keys.authenticate(secret) : null;
  if (caller) return caller;
  await failures.count(request.ip);
  throw unauthenticated('Bearer error="invalid_token"', 'The API key is not valid.');
}

function unauthenticated(challenge: string, message: string): StoreError {
  return new StoreError('UNAUTHENTICATED', message, { headers: { 'www-authenticate': challenge } });
}
