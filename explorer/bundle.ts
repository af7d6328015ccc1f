/// <reference types="node" />
// The last step of the build: GraphiQL for browsers, in a folder that is named after everything it is made of.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const sources = import.meta.dirname;
const root = join(sources, '..');
const bundles = join(root, 'dist/graphiql');

/** Makes the bundle, unless it exists already. */
export async function makeBundle(): Promise<void> {
  const folder = join(bundles, fingerprint());
  if (existsSync(folder)) return;
  mkdirSync(bundles, { recursive: true });
  const copy = mkdtempSync(join(bundles, '.'));
  try {
    await bundle(copy);
    // The service may run as another user than the build.
    chmodSync(copy, 0o755);
    const others = readdirSync(bundles).filter((name) => !name.startsWith('.'));
    renameSync(copy, folder);
    for (const name of others) rmSync(join(bundles, name), { recursive: true, force: true });
  } catch (error) {
    rmSync(copy, { recursive: true, force: true });
    // Another build was faster.
    if (!existsSync(folder)) throw error;
  }
}

function fingerprint(): string {
  const own = readdirSync(sources, { withFileTypes: true }).filter((entry) => entry.isFile());
  const files = [...own.map(({ name }) => join(sources, name)).sort(), join(root, 'package-lock.json')];
  const hash = createHash('sha256');
  for (const file of files) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** Writes `page.js`, `page.css`, Monaco's workers, everything they load, and all of it compressed. */
async function bundle(folder: string): Promise<void> {
  // Only now, because most builds have nothing to do.
  const { build } = await import('esbuild');
  const monaco = 'monaco-editor/esm/vs';
  await build({
    entryPoints: {
      page: join(sources, 'page.tsx'),
      'editor.worker': `${monaco}/editor/editor.worker.js`,
      'json.worker': `${monaco}/language/json/json.worker.js`,
      'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
    },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'linked',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [
      {
        // GraphiQL's own style sheet contains them.
        name: 'without-styles-of-monaco',
        setup({ onLoad }) {
          onLoad({ filter: /monaco-editor.+\.css$/ }, () => ({ contents: '', loader: 'empty' }));
        },
      },
    ],
  });
  for (const name of readdirSync(folder).filter((file) => /\.(?:js|css)$/.test(file))) {
    const content = readFileSync(join(folder, name));
    // A quality beyond 6 takes seconds, and saves little.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 6 };
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content));
  }
}
