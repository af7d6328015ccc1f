import { loadConfig } from './config.ts';
import { ormOptions } from './database/options.ts';

/** For MikroORM's command line (`npx mikro-orm ...`), which works on the PostgreSQL of DATABASE_URL. */
export default ormOptions(loadConfig(process.env).database, undefined);
