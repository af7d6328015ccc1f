import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import type { TObject } from 'typebox';
import { deprecationDescription } from '../../access/deprecations/deprecation.ts';
import { idempotencyDescription, notRepeatable } from '../../access/idempotency/idempotency-key.ts';
import { quotaDescription } from '../../access/quotas/meter.ts';
import { StoreError } from '../../errors.ts';
import { checker } from '../../storage/input/check.ts';
import { failure, type Response, text } from './responses.ts';

/** A route's schema with the members that only OpenAPI reads. */
type Contract = FastifySchema & { response: Record<string, Response>; tags?: string[] };

/**
 * The contract of a route: its own schema, and what each duty of the service adds to it, in this order. Routes without
 * documented responses are not part of the contract.
 */
export function describeRoute(route: RouteOptions, { section }: Pick<FastifyInstance, 'section'>): FastifySchema {
  const described = { ...route.schema, ...(section && { tags: [section] }) };
  if (!described.response) return described;
  const parts = [failures, revalidation, idempotency, quota, deprecation];
  return parts.reduce((contract, part) => part(contract, route), described as Contract);
}

const retryAfter = { 'Retry-After': text('RFC 9110 section 10.2.3: in how many seconds to try again.') };

/** Failures that any operation may return. */
const always: Record<number, Response> = {
  401: failure('UNAUTHENTICATED', 'API key missing or invalid.', 'The API key is not valid.', {
    'WWW-Authenticate': text('RFC 6750 section 3; with `error="invalid_token"` when a key was given.'),
  }),
  429: failure(
    'TOO_MANY_REQUESTS',
    'The key has used up its quota, or too many wrong keys came from this address.',
    'This key has used its 6000 units of this minute.',
    retryAfter,
  ),
  500: failure('INTERNAL_SERVER_ERROR', 'The service failed.', 'The service failed to answer this request.'),
  503: failure(
    'SERVICE_UNAVAILABLE',
    'The database cannot be reached for the moment.',
    'The database cannot be reached; try again shortly.',
    retryAfter,
  ),
};

const withBody: Record<number, Response> = {
  408: failure(
    'REQUEST_TIMEOUT',
    'The request took too long to arrive.',
    'The request took too long to arrive: nothing was done. Send it again.',
  ),
  413: failure('PAYLOAD_TOO_LARGE', 'Body is too large.', 'The body has more than 1048576 bytes.'),
  415: failure(
    'UNSUPPORTED_MEDIA_TYPE',
    'Body is not JSON.',
    'The body must be JSON, sent with Content-Type: application/json.',
  ),
};

const readOnly = failure('FORBIDDEN', 'The key may only read.', 'This needs an API key with the scope "write".');

/** The failures that a route's properties imply. */
function failures(contract: Contract, { config }: RouteOptions): Contract {
  const { response, querystring, body } = contract;
  return {
    ...contract,
    response: {
      ...response,
      ...(querystring ? { 400: refusal(querystring, 'A query parameter is invalid.') } : {}),
      ...(body ? { 400: refusal(body, 'Body is missing required fields or contains invalid values.') } : {}),
      ...(config?.scope === 'write' && { 403: readOnly }),
      ...(body ? withBody : {}),
      ...always,
    },
  };
}

/** Documents a 400, with the message for an input without any valid member. */
function refusal(schema: unknown, description: string): Response {
  const { properties = {} } = schema as TObject;
  const invalid = Object.fromEntries(Object.keys(properties).map((name) => [name, {}]));
  try {
    checker(schema as TObject)(invalid);
  } catch (error) {
    if (error instanceof StoreError) return failure(error.code, description, error.message);
    throw error;
  }
  throw new Error('An input that takes anything needs no schema.');
}

const ifNoneMatch = text(
  'RFC 9110 section 13.1.2: entity tags of earlier responses, or `*`; 304 when one of them is still current.',
);
const ofBoth = {
  ETag: text('RFC 9110 section 8.8.3: a weak entity tag, the same for every content coding.'),
  'Cache-Control': text('`private, no-cache`: only the client may store it, and revalidates it each time.'),
  Vary: text('RFC 9110 section 12.5.5: `Accept-Encoding`, and `Origin` if frontends of other origins are allowed.'),
};
const ofContent = { 'Content-Encoding': text('`zstd`, `br` or `gzip`, as `Accept-Encoding` prefers; else absent.') };

/** Entity tags, 304 and compression, for operations that read. */
function revalidation(contract: Contract, { method }: RouteOptions): Contract {
  const { 200: read } = contract.response;
  if (method !== 'GET' || !read) return contract;
  return {
    ...contract,
    headers: { type: 'object', properties: { 'If-None-Match': ifNoneMatch } },
    response: {
      ...contract.response,
      200: { ...read, headers: { ...ofBoth, ...ofContent, ...read.headers } },
      304: {
        description: 'The client has the current version. No body; the headers are those of 200.',
        type: 'null',
        headers: { ...ofBoth, ...read.headers },
      },
    },
  };
}

function idempotency(contract: Contract, { config }: RouteOptions): Contract {
  if (!config?.isRepeatable) {
    if (config?.scope !== 'write' || contract.response[400]) return contract;
    const { code, message } = notRepeatable();
    const refusal = failure(code, 'The operation takes no Idempotency-Key.', message);
    return { ...contract, response: { ...contract.response, 400: refusal } };
  }
  const { request, response, failures } = idempotencyDescription;
  return {
    ...contract,
    headers: { type: 'object', properties: request },
    response: {
      ...withHeaders(contract.response, response, (status) => status.startsWith('2')),
      ...Object.fromEntries(
        failures.map(({ status, code, description, message, headers }) => [
          status,
          failure(code, description, message, headers),
        ]),
      ),
    },
  };
}

/** What is charged reports the quota, when it succeeds and when the quota is used up. */
function quota(contract: Contract, { config }: RouteOptions): Contract {
  if (config?.isUnmetered) return contract;
  const isCharged = (status: string) => /^2|304|429/.test(status);
  return { ...contract, response: withHeaders(contract.response, quotaDescription, isCharged) };
}

function deprecation(contract: Contract, { config }: RouteOptions): Contract {
  if (!config?.deprecation) return contract;
  const { headers, ...marks } = deprecationDescription(config.deprecation);
  return { ...contract, ...marks, response: withHeaders(contract.response, headers) };
}

function withHeaders(
  responses: Record<string, Response>,
  added: Record<string, object>,
  isMeant: (status: string) => boolean = () => true,
): Record<string, Response> {
  const described = Object.entries(responses).map(([status, response]) => [
    status,
    isMeant(status) ? { ...response, headers: { ...response.headers, ...added } } : response,
  ]);
  return Object.fromEntries(described);
}
