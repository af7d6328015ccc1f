import mercurius from 'mercurius';
import { withDuties } from './duties.js';
import { resolvers, typeDefs } from './pet.graphql.js';

const app = await withDuties();
await app.register(mercurius, { schema: typeDefs, resolvers, jit: 1 });
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
