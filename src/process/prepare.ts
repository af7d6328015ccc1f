import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../config/config.ts';
import { prepareStore } from './prepared-store.ts';
import { startFailure } from './start-failure.ts';

// The last step of the build. Without a prepared store the first start takes
// longer and migrates the store itself.
const prepared = prepareStore().catch((error) => {
  process.stderr.write(
    `animal-store: built without a prepared store: ${startFailure(error)}\n`,
  );
});
// The sources of the guides are optional.
const renderer = join(root, 'tools/guide.mjs');
if (existsSync(renderer)) {
  await import(pathToFileURL(renderer).href).catch((error: Error) => {
    process.stderr.write(
      `animal-store: built without the guides: ${error.message}\n`,
    );
  });
}
await prepared;
