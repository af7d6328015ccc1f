/// <reference types="node" />
// Bundles GraphiQL for browsers into a folder of `dist`, whose name is a hash of all sources. The folder is committed, so
// that only changes in explorer/ need the packages. `npm run explorer` writes it; `--check` compares it.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

const sources = import.meta.dirname;
const bundles = join(sources, 'dist');

/** A hash of the sources, the settings and the lock file, which determines the packages. */
function fingerprint(): string {
  const files = readdirSync(sources, { withFileTypes: true }).filter((entry) => entry.isFile());
  const hash = createHash('sha256');
  for (const name of files.map(({ name }) => name).sort()) hash.update(name).update(readFileSync(join(sources, name)));
  return hash.digest('hex').slice(0, 16);
}

/** Writes `page.js`, `page.css`, Monaco's workers and all their dependencies. */
async function bundle(folder: string): Promise<void> {
  const monaco = 'monaco-editor/esm/vs';
  const { metafile } = await build({
    absWorkingDir: sources,
    entryPoints: {
      page: 'page.tsx',
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
    // Only for subscriptions over WebSocket, which the service does not support.
    external: ['graphql-ws'],
    metafile: true,
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
  const foreign = Object.keys(metafile.inputs).filter((path) => path.startsWith('..'));
  if (foreign.length > 0) throw new Error(`These modules are not from this folder's packages: ${foreign.join(', ')}`);
}

function filesIn(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** @throws Error unless the committed bundle matches these sources and packages */
async function check(): Promise<void> {
  const outdated = new Error('explorer/dist does not match explorer/: run `npm run explorer` and commit the result.');
  const name = fingerprint();
  if (readdirSync(bundles).join() !== name) throw outdated;
  const folder = mkdtempSync(join(tmpdir(), 'animal-store-explorer-'));
  try {
    await bundle(folder);
    const [made, committed] = [filesIn(folder), filesIn(join(bundles, name))];
    const isSame = [...made].every(([file, content]) => committed.get(file)?.equals(content));
    if (!isSame || made.size !== committed.size) throw outdated;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv.includes('--check')) await check();
else {
  const folder = join(bundles, fingerprint());
  rmSync(bundles, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await bundle(folder);
}
