import Fastify from 'fastify';
import { hotPage } from './pet.statements.js';

// The upper limit of Fastify: the text of the hot page, which is serialized
// once.
const page = await hotPage();

const app = Fastify();
app.get('/v1/pets', (_request, reply) => {
  reply.header('content-type', 'application/json; charset=utf-8').send(page);
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
