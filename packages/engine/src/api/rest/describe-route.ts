import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifySchema,
  RouteOptions,
} from 'fastify';
import { type TObject, Type } from 'typebox';
import {
  longestKey,
  notIdempotent,
} from '../../access/idempotency/idempotency-key.ts';
import { inUse, reused } from '../../database/idempotency.ts';
import { internalError, type StoreError } from '../../errors.ts';
import { forbidden, type Scope } from '../../scopes.ts';
import { mapMembers } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';
import { notJson } from '../http/failures.ts';
import { requestTimeout } from '../http/malformed.ts';
import { badHost } from '../http/routes.ts';
import {
  documentedFailure,
  failure,
  headerSchema,
  type Response,
} from './documented-responses.ts';

/** A route's schema with the members that only OpenAPI reads. */
type Contract = FastifySchema & {
  /** The scope that it needs. */
  'x-scope'?: string;
  response: Record<string, Response>;
  tags?: string[];
};

/**
 * Returns the contract of a route: its own schema, plus its possible failures,
 * entity tags and 304 for reads, `Idempotency-Key` and the deprecation. Routes
 * without documented responses are not part of the contract.
 */
export function describeRoute(
  { schema, config = {}, method }: RouteOptions,
  { section }: FastifyInstance,
) {
  const own = { ...schema, ...(section && { tags: [section] }) } as Contract;
  if (!own.response) return own;
  const { deprecation, isIdempotent, live, scope = 'read' } = config;
  const isTried = isIdempotent || config.isTried;
  const responses: Record<string, Response> = {
    ...failuresOf(own, config),
    ...(isIdempotent && conflicts),
    ...own.response,
  };
  const requestHeaders = {};
  const read = method === 'GET' && own.response[200];
  if (read) {
    const { headers = {} } = read;
    responses[200] = {
      ...read,
      content: { ...read.content, ...(live && eventContent) },
      headers: { ...ofBoth, ...ofContent, ...headers },
    };
    responses[304] = { ...notModified, headers: { ...ofBoth, ...headers } };
    const isCounted = 'X-Total-Count' in headers;
    if (isCounted) Object.assign(requestHeaders, prefer);
    Object.assign(requestHeaders, ifNoneMatch, live && lastEventId);
  }
  if (isIdempotent) Object.assign(requestHeaders, idempotencyKey);
  if (isTried) Object.assign(requestHeaders, trial);
  for (const [status, described] of Object.entries(responses)) {
    const isSuccess = status.startsWith('2');
    const headers = {
      ...described.headers,
      ...(isIdempotent && isSuccess && replayed),
      ...(deprecation && ofDeprecated),
    };
    const hasHeaders = Object.keys(headers).length > 0;
    // A copy, because features add to it.
    responses[status] = { ...described, ...(hasHeaders && { headers }) };
  }
  return {
    ...own,
    'x-scope': scope,
    ...(Object.keys(requestHeaders).length > 0 && {
      headers: { type: 'object', properties: requestHeaders },
    }),
    // The removal date in the format of OpenAPI tools (oasdiff).
    ...(deprecation && {
      deprecated: true,
      'x-sunset': deprecation.removal.toISOString().slice(0, 10),
    }),
    response: responses,
  };
}

/** The failures that a route's properties imply. */
function failuresOf(contract: Contract, config: FastifyContextConfig) {
  return {
    400: refusedInput(contract, config),
    403: forbiddenResponse(config.scope ?? 'read'),
    ...(Boolean(contract.body) && withBody),
    ...everywhere,
  };
}

function refusedInput(
  { querystring, body }: Contract,
  { scope, isIdempotent }: FastifyContextConfig,
): Response {
  const wrongBody =
    'Body is missing required fields or contains invalid values.';
  if (body) return describedRefusal(body, wrongBody);
  const { properties = {} } = (querystring ?? {}) as Partial<TObject>;
  if (Object.keys(properties).length > 0)
    return describedRefusal(querystring, 'A query parameter is invalid.', true);
  const refusesKey = scope?.endsWith('write') && !isIdempotent;
  if (refusesKey)
    return documentedFailure(
      notIdempotent(),
      'The operation takes no Idempotency-Key.',
    );
  return failure('BAD_USER_INPUT', 'The request has no valid Host.', badHost);
}

/**
 * Documents a 400. Its example is the validator's own message, for an input
 * without any valid member.
 */
function describedRefusal(
  schema: unknown,
  description: string,
  isLenient = false,
): Response {
  const { properties = {} } = schema as TObject;
  const check = validator(schema as TObject, { isLenient });
  // A text may be a question mark, and JSON anything but U+0000.
  for (const wrong of [isLenient ? '?' : {}, '\u0000']) {
    try {
      check(mapMembers(properties, () => wrong));
    } catch (error) {
      return documentedFailure(error as StoreError, description);
    }
  }
  throw new Error('An input that takes anything needs no schema.');
}

const retryAfter = {
  'Retry-After': headerSchema(
    'RFC 9110 section 10.2.3: in how many seconds to try again.',
  ),
};

/** Failures that any operation may return. */
const everywhere: Record<number, Response> = {
  401: failure(
    'UNAUTHENTICATED',
    'API key missing or invalid.',
    'The API key is not valid.',
    {
      'WWW-Authenticate': headerSchema(
        'RFC 6750 section 3; with `error="invalid_token"` when a key was given.',
      ),
    },
  ),
  429: failure(
    'TOO_MANY_REQUESTS',
    'Too many wrong keys came from this address.',
    'Too many requests with a wrong API key came from this address.',
    retryAfter,
  ),
  500: documentedFailure(internalError(undefined), 'The service failed.'),
  503: failure(
    'SERVICE_UNAVAILABLE',
    'The database cannot be reached for the moment.',
    'The database cannot be reached; try again shortly.',
    retryAfter,
  ),
};

const withBody: Record<number, Response> = {
  408: documentedFailure(
    requestTimeout,
    'The request took too long to arrive.',
  ),
  413: failure(
    'PAYLOAD_TOO_LARGE',
    'Body is too large.',
    'The body has more than 1048576 bytes.',
  ),
  415: failure('UNSUPPORTED_MEDIA_TYPE', 'Body is not JSON.', notJson),
};

const forbiddenResponse = (scope: Scope) =>
  documentedFailure(forbidden(scope), 'The key or token lacks the scope.', {
    'WWW-Authenticate': headerSchema(
      'RFC 6750 section 3, for a token: the `scope` that it lacks.',
    ),
  });

const prefer = {
  Prefer: headerSchema(
    'RFC 7240: `count=exact` asks for the number of items on all pages, `handling=strict` refuses unknown parameters.',
  ),
};
const trial = {
  Prefer: headerSchema(
    'RFC 7240: `tx=rollback` does all of it, and rolls it back.',
  ),
};
const ifNoneMatch = {
  'If-None-Match': headerSchema(
    'RFC 9110 section 13.1.2: entity tags of earlier responses, or `*`; 304 when one of them is still current.',
  ),
};
const ofBoth = {
  ETag: headerSchema(
    'RFC 9110 section 8.8.3: a weak entity tag, the same for every content coding.',
  ),
  'Cache-Control': headerSchema(
    '`private, no-cache`: only the client may store it, and revalidates it each time.',
  ),
  Vary: headerSchema(
    'RFC 9110 section 12.5.5: `Accept-Encoding`, and `Origin` if frontends of other origins are allowed.',
  ),
};
const ofContent = {
  'Content-Encoding': headerSchema(
    '`zstd`, `br` or `gzip`, as `Accept-Encoding` prefers; else absent.',
  ),
};

const eventContent = {
  'text/event-stream': {
    schema: Type.String({
      description:
        'An event for each item after `after`, or else for each that is added from now on: its `data` is the item, as in the list, its `id` that of the item. `limit` is ignored.',
    }),
  },
};
const lastEventId = {
  'Last-Event-ID': headerSchema(
    'WHATWG HTML section 9.2.4: with `text/event-stream`, takes the place of `after`.',
  ),
};

const notModified: Response = {
  description:
    'The client has the current version. No body; the headers are those of 200.',
  type: 'null',
};

const idempotencyKey = {
  'Idempotency-Key': headerSchema(
    `The client's own name for this creation, 1 to ${longestKey} visible ASCII characters, bare or as a quoted string: sent again under the same name, it is not carried out again, and answered as at first (draft-ietf-httpapi-idempotency-key-header).`,
  ),
};
const replayed = {
  'Idempotent-Replayed': headerSchema(
    '`true` when an earlier request had created it.',
  ),
};
const conflicts: Record<number, Response> = {
  409: documentedFailure(
    inUse(),
    'A request with the same Idempotency-Key is still under way, or another item has a value that is unique.',
    {
      'Retry-After': headerSchema('In how many seconds to try again.'),
    },
  ),
  422: documentedFailure(
    reused(),
    'The Idempotency-Key was used for another input.',
  ),
};

const ofDeprecated = {
  Deprecation: headerSchema(
    'RFC 9745: since when this operation is deprecated.',
  ),
  Sunset: headerSchema('RFC 8594: when this operation will be removed.'),
  Link: headerSchema(
    'What comes in its place, with `rel="successor-version"`.',
  ),
};
