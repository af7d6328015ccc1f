import type { FastifyInstance, FastifySchema } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type TObject, type TSchema, Type } from 'typebox';
import { type ErrorCode, httpStatusOf, restCodes, StoreError } from '../../errors.ts';
import { checker } from '../../storage/input/check.ts';
import { pageLimit } from '../../storage/input/page.ts';

/** The specification's Error. */
const ErrorSchema = Type.Object(
  {
    code: Type.String({
      description: `Machine-readable error code: ${restCodes.join(', ')}.`,
      examples: ['BAD_USER_INPUT'],
    }),
    message: Type.String({ description: 'Human-readable description.' }),
    status: Type.Integer({ description: 'The HTTP status code of the response.', minimum: 400, maximum: 599 }),
  },
  { $id: 'Error', description: 'Any failure.' },
);

/** A response as OpenAPI shows it. */
interface Response {
  description: string;
  headers?: Record<string, object>;
  content: { 'application/json': { schema: TSchema; example?: unknown } };
}

/** A documented success: a JSON body, with optional headers. */
export function success(schema: TSchema, description: string, headers?: Record<string, object>): Response {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema } } };
}

/** A documented page of a list. @param name of the list's component */
export function pageOf(item: TSchema, name: string, description: string): Response {
  const schema = Type.Array(item, {
    $id: name,
    description: `${description} Ascending by id.`,
    maxItems: pageLimit.max,
  });
  const Link = text('RFC 8288: the address of the next page with `rel="next"`; absent on the last page.');
  return success(schema, description, { Link });
}

/** A documented failure. */
export function failure(
  code: ErrorCode,
  description: string,
  message: string,
  headers?: Record<string, object>,
): Response {
  const example = { code, message, status: httpStatusOf[code] };
  return {
    description,
    ...(headers && { headers }),
    content: { 'application/json': { schema: ErrorSchema, example } },
  };
}

function text(description: string) {
  return { type: 'string', description };
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
  413: failure('PAYLOAD_TOO_LARGE', 'Body is too large.', 'The body has more than 1048576 bytes.'),
  415: failure(
    'UNSUPPORTED_MEDIA_TYPE',
    'Body is not JSON.',
    'The body must be JSON, sent with Content-Type: application/json.',
  ),
};

const readOnly = failure('FORBIDDEN', 'The key may only read.', 'This needs an API key with the scope "write".');

/** Documents the failures that a route's properties imply, so that none is forgotten. Register it before the routes. */
export const documentedFailures = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.addHook('onRoute', ({ schema, config }) => {
      if (!schema?.response) return;
      schema.response = {
        ...(schema.response as object),
        ...(schema.querystring ? { 400: refusal(schema.querystring, 'A query parameter is invalid.') } : {}),
        ...(schema.body
          ? { 400: refusal(schema.body, 'Body is missing required fields or contains invalid values.') }
          : {}),
        ...(config?.scope === 'write' && { 403: readOnly }),
        ...(schema.body ? withBody : {}),
        ...always,
      };
    });
  },
  { name: 'documented-failures' },
);

/** Documents a 400, with the message for an input without any valid member. */
function refusal(schema: NonNullable<FastifySchema['body']>, description: string): Response {
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
