import { Type } from 'typebox';
import { type ErrorCode, httpStatusOf, restCodes } from '../errors.ts';

/** The specification's Error, as a schema with an `$id` so that OpenAPI names it once. */
export const ErrorSchema = Type.Object(
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

/** A documented failure of an operation. */
export function errorResponse(code: ErrorCode, description: string, message: string) {
  return {
    description,
    content: {
      'application/json': {
        schema: Type.Ref('Error#'),
        example: { code, message, status: httpStatusOf[code] },
      },
    },
  };
}

const challenge = {
  'WWW-Authenticate': {
    type: 'string',
    description: 'RFC 6750 section 3; with `error="invalid_token"` when a key was given.',
  },
};

const retryAfter = {
  'Retry-After': { type: 'string', description: 'RFC 9110 section 10.2.3: in how many seconds to try again.' },
};

/** Failures that any operation may answer with. */
export const commonErrors = {
  401: {
    ...errorResponse('UNAUTHENTICATED', 'API key missing or invalid.', 'The API key is not valid.'),
    headers: challenge,
  },
  429: {
    ...errorResponse(
      'TOO_MANY_REQUESTS',
      'The key has used up its quota, or too many wrong keys came from this address.',
      'This key has used its 6000 units of this minute.',
    ),
    headers: retryAfter,
  },
  500: errorResponse('INTERNAL_SERVER_ERROR', 'The service failed.', 'The service failed to answer this request.'),
  503: {
    ...errorResponse(
      'SERVICE_UNAVAILABLE',
      'The database cannot be reached for the moment.',
      'The database cannot be reached; try again shortly.',
    ),
    headers: retryAfter,
  },
};
