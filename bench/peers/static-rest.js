import Fastify from 'fastify';
import { listPets, pool } from './pet.statements.js';

// The upper limit of Fastify: the text of the hot page, which is serialized once.
const rows = await listPets({ limit: 20 });
await pool.end();
const page = JSON.stringify(rows.map((row) => ({ ...row, id: Number(row.id), categoryId: Number(row.categoryId) })));

const app = Fastify();
app.get('/v1/pets', (_request, reply) => {
  reply.header('content-type', 'application/json; charset=utf-8').send(page);
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
