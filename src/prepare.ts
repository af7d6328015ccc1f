import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { prepareStore } from './prepared-store.ts';

const bundle = join(import.meta.dirname, '../../explorer/bundle.ts');

// The last step of the build. The image is built without the sources of GraphiQL.
const { makeBundle } = existsSync(bundle) ? await import(bundle) : {};
await Promise.all([prepareStore(), makeBundle?.()]);
