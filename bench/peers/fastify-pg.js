import Fastify from 'fastify';
import { petRoutes } from './pet.routes.js';

const app = Fastify();
petRoutes(app);
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
