import { ormConfig } from '@animal-store/engine/mikro-orm';
import { service } from './service.ts';

export default () => ormConfig(service);
