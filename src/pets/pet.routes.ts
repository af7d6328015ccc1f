import {
  failure,
  idSchema,
  int64FromText,
  orNotFound,
  pageOf,
  type Routes,
  sendPage,
  success,
} from '@animal-store/engine';
import { newPetSchema, petQuerySchema, petSchema } from './pet.schemas.ts';
import type { PetService } from './pet.service.ts';
import { getPetDeprecation, getPetRemovalDay } from './pet.types.ts';

/**
 * The REST API of the catalogue: `listPets`, `createPet`, `getPet`. Fastify
 * validates by `querystring` and `body` before it calls a handler
 * (`buildValidator` in api/http/routes.ts).
 */
export function petRoutes(app: Routes, pets: PetService): void {
  const listPets = {
    operationId: 'listPets',
    summary: 'List animals',
    description:
      'Returns a page of animals by ascending id, or newest first, optionally filtered by availability. Follow `Link: <...>; rel="next"` for further pages.',
    querystring: petQuerySchema,
    response: { 200: pageOf(petSchema, 'Pets', 'A page of animals.', true) },
  };
  const live: PetService['added'] = (query) => pets.added(query);
  app.get(
    '/pets',
    { schema: listPets, config: { live } },
    async (request, reply) =>
      sendPage(
        request,
        reply,
        await pets.list(request.query, request.call),
        () => pets.count(request.query, request.call),
      ),
  );

  const createPet = {
    operationId: 'createPet',
    summary: 'Add an animal',
    description:
      'Adds an animal to the catalogue. Members that are not listed are ignored. It is stored durably when 201 is answered.',
    body: newPetSchema,
    response: { 201: success(petSchema, 'Animal added.') },
  };
  app.post(
    '/pets',
    { schema: createPet, config: { scope: 'write', isIdempotent: true } },
    async (request, reply) =>
      reply.code(201).send(await pets.create(request.body, request.call)),
  );

  const getPet = {
    operationId: 'getPet',
    summary: 'Get an animal',
    description: `Fetches one animal. Deprecated: it will be removed on ${getPetRemovalDay}. Use ${getPetDeprecation.replacement} instead.`,
    params: idSchema('petId', 'animal'),
    response: {
      200: success(petSchema, 'The animal.'),
      404: failure(
        'NOT_FOUND',
        'The animal could not be found.',
        'There is no animal with the id 1.',
      ),
    },
  };
  const config = {
    deprecation: {
      ...getPetDeprecation,
      operation: 'getPet',
      successor: '/v1/pets',
    },
  };
  // An empty segment is not an id: `/pets/` does not exist.
  app.get(
    '/pets/:petId(^[^]+$)',
    { schema: getPet, config },
    async ({ params, call }) =>
      orNotFound(
        await pets.find(int64FromText(params.petId), call),
        'animal',
        params.petId,
      ),
  );
}
