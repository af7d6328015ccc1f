import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { prepareStore } from './prepared-store.ts';
import { startFailure } from './start-failure.ts';

const root = join(import.meta.dirname, '../../..');
const committed = join(root, 'web/explorer/dist');
const served = join(root, 'dist/graphiql');

/** Copies and compresses the committed bundle of GraphiQL. */
function compressBundle(): void {
  // The bundle is optional.
  const [name] = existsSync(committed) ? readdirSync(committed) : [];
  if (name === undefined || existsSync(join(served, name))) return;
  rmSync(served, { recursive: true, force: true });
  const folder = join(served, '.new');
  cpSync(join(committed, name), folder, { recursive: true });
  for (const file of readdirSync(folder).filter((one) => /\.(?:js|css)$/.test(one))) {
    const content = readFileSync(join(folder, file));
    // A higher quality takes seconds and saves little.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 6 };
    writeFileSync(join(folder, `${file}.br`), brotliCompressSync(content, { params }));
    writeFileSync(join(folder, `${file}.gz`), gzipSync(content));
  }
  renameSync(folder, join(served, name));
}

/** Renders the guides. Their sources are optional, like the bundle's. */
async function renderGuides(): Promise<void> {
  const renderer = join(root, 'tools/guide.mjs');
  if (existsSync(renderer)) await import(pathToFileURL(renderer).href);
}

// The last step of the build. Without a prepared store the first start takes longer and migrates the store itself.
const prepared = prepareStore().catch((error) => {
  process.stderr.write(`animal-store: built without a prepared store: ${startFailure(error)}\n`);
});
const guides = renderGuides().catch((error: Error) => {
  process.stderr.write(`animal-store: built without the guides: ${error.message}\n`);
});
compressBundle();
await Promise.all([prepared, guides]);
