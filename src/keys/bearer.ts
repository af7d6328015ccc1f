import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { ApiKeyService, Caller } from './api-key.service.ts';
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
}

/** Guards every route, unknown ones included, of every face: adds `request.caller`, or fails with 401 or 403. */
export const bearer = fastifyPlugin<BearerOptions>(async (app, { keys }) => {
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request) => {
    const { public: open, scope } = request.routeOptions.config;
    if (open === true || (typeof open === 'function' && open(request))) return;
    request.caller = await authenticate(keys, request.headers.authorization);
    if (scope) assertScope(request.caller, scope);
  });
});

// RFC 6750 section 2.1, with the scheme's case ignored as RFC 9110 section 11.1 asks.
const credentials = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;

/** @throws StoreError UNAUTHENTICATED with the challenge of RFC 6750 section 3. */
export async function authenticate(keys: ApiKeyService, authorization: string | undefined): Promise<Caller> {
  if (!authorization) throw unauthenticated('Bearer', 'An API key is required: Authorization: Bearer <API_KEY>.');
  const secret = credentials.exec(authorization)?.[1];
  const caller = secret === undefined ? null : await keys.authenticate(secret);
  if (!caller) throw unauthenticated('Bearer error="invalid_token"', 'The API key is not valid.');
  return caller;
}

function unauthenticated(challenge: string, message: string): StoreError {
  return new StoreError('UNAUTHENTICATED', message, { headers: { 'www-authenticate': challenge } });
}
