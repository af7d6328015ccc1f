import pg from 'pg';
import { createPet, findPet, listPets } from './pet.statements.js';

// Loses digits of int64, but is faster than BigInt, which favours these peers.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const status = { type: 'string', enum: ['available', 'pending', 'sold'] };
const members = {
  name: { type: 'string' },
  categoryId: { type: 'integer' },
  status,
};
const pet = {
  type: 'object',
  properties: { id: { type: 'integer' }, ...members },
};

const listSchema = {
  querystring: {
    type: 'object',
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      status,
      after: { type: 'integer' },
    },
  },
  response: { 200: { type: 'array', items: pet } },
};

const createSchema = {
  body: {
    type: 'object',
    required: ['name', 'categoryId'],
    properties: members,
  },
  response: { 201: pet },
};

const findSchema = {
  params: { type: 'object', properties: { petId: { type: 'integer' } } },
  response: { 200: pet },
};

/** The three routes, carefully written by hand. */
export function petRoutes(app) {
  app.get('/v1/pets', { schema: listSchema }, (request) =>
    listPets(request.query),
  );

  app.post('/v1/pets', { schema: createSchema }, async (request, reply) => {
    reply.code(201);
    return createPet(request.body);
  });

  app.get('/v1/pets/:petId', { schema: findSchema }, async (request, reply) => {
    const found = await findPet(request.params.petId);
    return (
      found ??
      reply.code(404).send({
        code: 'NOT_FOUND',
        message: 'There is no such animal.',
        status: 404,
      })
    );
  });
}
