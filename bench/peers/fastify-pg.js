import Fastify from 'fastify';
import pg from 'pg';
import { createPet, findPet, listPets } from './pet.statements.js';

// Fewer digits than int64 has, but faster than BigInt: it favours this peer.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const status = { type: 'string', enum: ['available', 'pending', 'sold'] };
const members = { name: { type: 'string' }, categoryId: { type: 'integer' }, status };
const pet = { type: 'object', properties: { id: { type: 'integer' }, ...members } };

const app = Fastify();

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
app.get('/v1/pets', { schema: listSchema }, (request) => listPets(request.query));

const createSchema = {
  body: { type: 'object', required: ['name', 'categoryId'], properties: members },
  response: { 201: pet },
};
app.post('/v1/pets', { schema: createSchema }, async (request, reply) => {
  reply.code(201);
  return createPet(request.body);
});

const findSchema = {
  params: { type: 'object', properties: { petId: { type: 'integer' } } },
  response: { 200: pet },
};
app.get('/v1/pets/:petId', { schema: findSchema }, async (request, reply) => {
  const found = await findPet(request.params.petId);
  return found ?? reply.code(404).send({ code: 'NOT_FOUND', message: 'There is no such animal.', status: 404 });
});

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
