import type { Routes } from '#engine/api/http/routes.js';
import {
  failure,
  pageOf,
  success,
} from '#engine/api/rest/documented-responses.js';
import { orNotFound, sendPage } from '#engine/api/rest/responses.js';
import { int64FromText } from '#engine/validation/int64.js';
import { idSchema } from '#engine/validation/schemas.js';
import type { LiveToys, Toys } from './toy.entity.ts';
import { newToySchema, toyQuerySchema, toySchema } from './toy.schemas.ts';
import { getToyDeprecation } from './toy.types.ts';

/** REST: `listToys`, `createToy`, and `getToy`, which will be removed. */
export function toyRoutes(app: Routes, toys: Toys, live: LiveToys): void {
  const listToys = {
    operationId: 'listToys',
    summary: 'List toys',
    querystring: toyQuerySchema,
    response: { 200: pageOf(toySchema, 'Toys', 'A page of toys.', true) },
  };
  const followed: LiveToys['subscribe'] = (query) => live.subscribe(query);
  app.get(
    '/toys',
    { schema: listToys, config: { live: followed } },
    async (request, reply) =>
      sendPage(
        request,
        reply,
        await toys.list(request.query, request.call),
        () => toys.count(request.query, request.call),
      ),
  );

  const createToy = {
    operationId: 'createToy',
    summary: 'Add a toy',
    body: newToySchema,
    response: { 201: success(toySchema, 'Toy added.') },
  };
  app.post(
    '/toys',
    { schema: createToy, config: { isIdempotent: true } },
    async (request, reply) =>
      reply.code(201).send(await toys.create(request.body, request.call)),
  );

  const getToy = {
    operationId: 'getToy',
    summary: 'Get a toy',
    params: idSchema('toyId', 'toy'),
    response: {
      200: success(toySchema, 'The toy.'),
      404: failure(
        'NOT_FOUND',
        'The toy could not be found.',
        'There is no toy with the id 1.',
      ),
    },
  };
  const config = {
    deprecation: {
      ...getToyDeprecation,
      operation: 'getToy',
      successor: '/v1/toys',
    },
  };
  app.get(
    '/toys/:toyId(^[^]+$)',
    { schema: getToy, config },
    async ({ params, call }) =>
      orNotFound(
        await toys.find(int64FromText(params.toyId), call),
        'toy',
        params.toyId,
      ),
  );
}
