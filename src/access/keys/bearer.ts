import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { ApiKeyService } from './api-key.service.ts';
import type { FailureLimit } from './failure-limit.ts';
import type { Caller } from './key-lookup.ts';
import { forbidden, hasScope } from './scope.ts';
import { PresentedKey } from './secret.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller whose key the request carries; null only on public routes. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** Needs no key; or only for the requests that the function selects. */
    public?: boolean | ((request: FastifyRequest) => boolean);
    /** The scope that a key needs here, `read` by default. Checked before the body is read. */
    scope?: KeyScope;
  }
}

export interface BearerOptions {
  keys: ApiKeyService;
  failures: FailureLimit;
}

/** Guards every route of both APIs, including unknown routes: sets `request.caller`, or fails with 401, 403 or 429. */
export const bearer = fastifyPlugin<BearerOptions>(
  async (app, options) => {
    app.decorateRequest('caller', null);
    // Callbacks rather than promises: this runs for every request, and most keys were looked up a moment ago.
    app.addHook('onRequest', (request, _reply, done) => {
      const { public: open } = request.routeOptions.config;
      if (open === true || (typeof open === 'function' && open(request))) return done();
      const key = presentedIn(request);
      const recalled = key && options.keys.recall(key, request.ip);
      if (recalled) return admit(request, recalled, done);
      authenticate(options, request, key).then((caller) => admit(request, caller, done), done);
    });
  },
  { name: 'bearer', dependencies: ['every-request', 'errors', 'cors'] },
);

function admit(request: FastifyRequest, caller: Caller, done: (error?: Error) => void): void {
  request.caller = caller;
  const { scope } = request.routeOptions.config;
  if (scope && !hasScope(caller, scope)) done(forbidden(scope));
  else done();
}

// RFC 6750 section 2.1, with the scheme's case ignored as RFC 9110 section 11.1 requires.
const credentials = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;

function presentedIn({ headers }: FastifyRequest): PresentedKey | undefined {
  const secret = credentials.exec(headers.authorization ?? '')?.[1];
  return secret === undefined ? undefined : new PresentedKey(secret);
}

/** What may be shown of the key in a request that was refused: it was issued once, or looks like it. */
export function presentedHint(request: FastifyRequest): string | undefined {
  return presentedIn(request)?.hint;
}

/** @throws StoreError UNAUTHENTICATED with the challenge of RFC 6750 section 3; TOO_MANY_REQUESTS */
export async function authenticate(
  options: BearerOptions,
  request: FastifyRequest,
  key = presentedIn(request),
): Promise<Caller> {
  const caller = key ? await lookUp(options, key, request) : null;
  if (caller) return caller;
  // A different scheme counts as no key (RFC 6750 section 3.1).
  const isGiven = /^bearer +\S/i.test(request.headers.authorization ?? '');
  if (isGiven) throw unauthenticated('Bearer error="invalid_token"', 'The API key is not valid.');
  throw unauthenticated('Bearer', 'An API key is required: Authorization: Bearer <API_KEY>.');
}

/** Only a key that needs a look-up, or may be a guess at the bootstrap key, is limited, and counts when it fails. */
async function lookUp({ keys, failures }: BearerOptions, key: PresentedKey, { ip, call }: FastifyRequest) {
  const recall = () => keys.recall(key, ip);
  const authenticate = () => keys.authenticate(key, ip, call);
  const recalled = recall();
  if (recalled !== undefined) return recalled;
  return keys.wasGood(key) ? authenticate() : failures.lookUp(ip, key.hash, recall, authenticate);
}

function unauthenticated(challenge: string, message: string): StoreError {
  return new StoreError('UNAUTHENTICATED', message, { headers: { 'www-authenticate': challenge } });
}
