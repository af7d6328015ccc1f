import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run } from '@animal-store/engine/cli';
import { start } from '@animal-store/engine/main';
import type { Service } from '#engine/feature.js';
import { booksModule } from '../../examples/own-service/src/books.ts';
import { features } from '../../src/features.ts';

/** Another service than the store, with all features. */
export const library: Service = {
  name: 'town-library',
  about: { title: 'Town Library', description: 'The books of a town.' },
  url: pathToFileURL(resolve('examples/own-service/package.json')).href,
  modules: async () => [booksModule],
  features,
};

if (process.argv[1] === resolve(import.meta.filename))
  await run(library, () => start(library, import.meta.filename));
