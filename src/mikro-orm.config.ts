import { ormConfig } from '@animal-store/engine/mikro-orm';
import { service } from './service.ts';

/**
 * For MikroORM's command line (`npx mikro-orm ...`), which uses the same
 * database as the service.
 */
export default () => ormConfig(service);
