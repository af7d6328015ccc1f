import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { prepareStore } from './prepared-store.ts';
import { startFailure } from './start-failure.ts';

const bundle = join(import.meta.dirname, '../../explorer/bundle.ts');

// The last step of the build. Without a prepared store the first start takes longer and migrates the store itself.
const prepared = prepareStore().catch((error) => {
  process.stderr.write(`animal-store: built without a prepared store: ${startFailure(error)}\n`);
});
// A copy without the sources of GraphiQL is built without it.
const { makeBundle } = existsSync(bundle) ? await import(bundle) : {};
await Promise.all([prepared, makeBundle?.()]);
