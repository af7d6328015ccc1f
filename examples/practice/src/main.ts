import { start } from '@animal-store/engine/main';
import { service } from './service.ts';

await start(service, import.meta.filename);
