import { Type } from 'typebox';
import { commonErrors, errorResponse } from '../rest/error.schema.ts';
import { jsonResponse } from '../rest/json-response.ts';
import { getPetDeprecation, getPetRemovalDay } from './pet.deprecation.ts';
import { ListPetsQuerySchema, PetIdParamsSchema } from './pet.schemas.ts';

/** The operations of the REST face as OpenAPI shows them; their responses are serialised by these schemas. */

const nextLink = {
  Link: {
    type: 'string',
    description: 'RFC 8288: the address of the next page with `rel="next"`; absent on the last page.',
  },
};

const deprecationSignals = {
  Deprecation: { type: 'string', description: 'RFC 9745: since when this operation is deprecated.' },
  Sunset: { type: 'string', description: 'RFC 8594: when this operation will be removed.' },
  Link: { type: 'string', description: 'What comes in its place, with `rel="successor-version"`.' },
};

export const listPets = {
  operationId: 'listPets',
  tags: ['Pets'],
  summary: 'List animals',
  description:
    'Returns a page of animals by ascending id, optionally filtered by availability. Follow `Link: <...>; rel="next"` for further pages.',
  querystring: ListPetsQuerySchema,
  response: {
    200: jsonResponse('Pets', 'A page of animals.', nextLink),
    400: errorResponse(
      'BAD_USER_INPUT',
      'A query parameter is invalid.',
      'limit must be an integer between 1 and 100.',
    ),
    ...commonErrors,
  },
};

export const createPet = {
  operationId: 'createPet',
  tags: ['Pets'],
  summary: 'Add an animal',
  description: 'Adds an animal to the catalogue. It is stored durably when 201 is answered.',
  body: Type.Ref('NewPet#'),
  response: {
    201: jsonResponse('Pet', 'Animal added.'),
    400: errorResponse(
      'BAD_USER_INPUT',
      'Body is missing required fields or contains invalid values.',
      'name is required; categoryId must be an integer between -9223372036854775808 and 9223372036854775807.',
    ),
    403: errorResponse('FORBIDDEN', 'The key may only read.', 'This needs an API key with the scope "write".'),
    413: errorResponse('PAYLOAD_TOO_LARGE', 'Body is too large.', 'The body is too large.'),
    415: errorResponse('UNSUPPORTED_MEDIA_TYPE', 'Body is not JSON.', 'The body must be application/json.'),
    ...commonErrors,
  },
};

export const getPet = {
  operationId: 'getPet',
  tags: ['Pets'],
  summary: 'Get an animal',
  description: `Fetches one animal. Deprecated: it will be removed on ${getPetRemovalDay}. Use ${getPetDeprecation.replacement} instead.`,
  deprecated: true,
  params: PetIdParamsSchema,
  response: {
    200: jsonResponse('Pet', 'The animal.', deprecationSignals),
    ...withSignals({
      404: errorResponse('NOT_FOUND', 'The animal could not be found.', 'There is no animal with the id 1.'),
      ...commonErrors,
    }),
  },
};

function withSignals(responses: Record<number, object & { headers?: object }>) {
  const signalled = Object.entries(responses).map(([status, { headers, ...response }]) => [
    status,
    { ...response, headers: { ...headers, ...deprecationSignals } },
  ]);
  return Object.fromEntries(signalled);
}
