import type { FastifyInstance } from 'fastify';
import { StoreError } from '../errors.ts';
import { integerFromText } from '../int64.ts';
import { metered } from '../quotas/meter.ts';
import { addressWith } from '../rest/links.ts';
import { getPetDeprecation } from './pet.deprecation.ts';
import { createPet, getPet, listPets } from './pet.operations.ts';
import { itemsIn } from './pet.rules.ts';
import { newPetSchema, PetSchema, PetStatusSchema, PetsSchema } from './pet.schemas.ts';
import type { PetPage, PetService } from './pet.service.ts';

export interface PetRoutesOptions {
  pets: PetService;
}

/** Requests that arrive together share a page, and are answered one after the other: it is serialised once. */
function jsonOfPages() {
  let last: { page: PetPage; text: string } | undefined;
  return (page: PetPage, serialise: () => string): string => {
    if (last?.page !== page) last = { page, text: serialise() };
    return last.text;
  };
}

/** The REST face of the catalogue: `listPets`, `createPet`, `getPet`. */
export async function petRoutes(app: FastifyInstance, { pets }: PetRoutesOptions): Promise<void> {
  const json = jsonOfPages();
  for (const schema of [PetStatusSchema, newPetSchema(pets.maxNameLength), PetSchema, PetsSchema])
    app.addSchema(schema);

  app.get<{ Querystring: Record<string, unknown> }>('/pets', { schema: listPets }, async (request, reply) => {
    const { limit, status, after } = request.query;
    const query = { limit: integerFromText(limit), status, after: integerFromText(after) };
    const page = await metered(request, itemsIn(limit), () => pets.list(query, request.call));
    const last = page.pets.at(-1);
    if (page.hasNext && last) reply.header('link', `<${addressWith(request, 'after', last.id)}>; rel="next"`);
    reply.type('application/json; charset=utf-8');
    return json(page, () => reply.serializeInput(page.pets as never, '200', 'application/json') as string);
  });

  app.post('/pets', { schema: createPet, config: { scope: 'write' } }, async (request, reply) => {
    const pet = await metered(request, 1, () => pets.create(request.body, request.call));
    return reply.code(201).send(pet);
  });

  const config = {
    deprecation: { ...getPetDeprecation, operation: getPet.operationId, successor: `${app.prefix}/pets` },
  };
  app.get<{ Params: { petId: string } }>('/pets/:petId(^[^]+$)', { schema: getPet, config }, async (request) => {
    const pet = await metered(request, 1, () => pets.find(integerFromText(request.params.petId), request.call));
    if (!pet) throw new StoreError('NOT_FOUND', `There is no animal with the id ${request.params.petId}.`);
    return pet;
  });
}
