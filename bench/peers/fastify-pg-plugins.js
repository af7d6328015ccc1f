import { withDuties } from './duties.js';
import { petRoutes } from './pet.routes.js';
import { withPlugins } from './plugins.js';

const app = await withDuties();
await withPlugins(app);
petRoutes(app);
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
