/// <reference types="node" />
// Bundles GraphiQL for browsers into a folder of `dist`, whose name is a hash
// of its files. The folder is committed, so that only changes in web/explorer/
// need the packages. `npm run explorer` writes it; `--check` compares it.
import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

const sources = import.meta.dirname;
const bundles = join(sources, 'dist');

/**
 * Writes `page.js`, `page.css`, Monaco's workers and all their dependencies.
 */
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
    // Only for subscriptions over WebSocket, which the service does not
    // support.
    external: ['graphql-ws'],
    metafile: true,
    // `node_modules` is a link to the packages of tools/ (tools/install.js).
    preserveSymlinks: true,
    plugins: [
      {
        // GraphiQL's own style sheet contains them.
        name: 'without-styles-of-monaco',
        setup({ onLoad }) {
          onLoad({ filter: /monaco-editor.+\.css$/ }, () => ({
            contents: '',
            loader: 'empty',
          }));
        },
      },
      {
        // They are a fifth of what the page loads; all pages have the system's.
        name: 'without-fonts-of-graphiql',
        setup({ onLoad }) {
          onLoad({ filter: /graphiql.dist.style\.css$/ }, async ({ path }) => ({
            contents: withoutFonts(await readFile(path, 'utf8')),
            loader: 'css',
          }));
        },
      },
    ],
  });
  const foreign = Object.keys(metafile.inputs).filter((path) =>
    path.startsWith('..'),
  );
  if (foreign.length > 0)
    throw new Error(
      `These modules are not from this folder's packages: ${foreign.join(', ')}`,
    );
}

/** Without Roboto and Fira Code. Monaco's font of icons stays. */
function withoutFonts(css: string): string {
  return css.replace(
    /@font-face\s*\{[^}]*\b(?:Roboto|Fira Code)\b[^}]*\}/g,
    '',
  );
}

function filesIn(folder: string): Map<string, Buffer> {
  return new Map(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]),
  );
}

/**
 * A hash of the files. Browsers keep them for ever, so other files need another
 * address.
 */
function nameOf(files: Map<string, Buffer>): string {
  const hash = createHash('sha256');
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(name).update(content);
  return hash.digest('hex').slice(0, 16);
}

const scratch = mkdtempSync(join(tmpdir(), 'animal-store-explorer-'));
try {
  await bundle(scratch);
  const name = nameOf(filesIn(scratch));
  if (!process.argv.includes('--check')) {
    rmSync(bundles, { recursive: true, force: true });
    cpSync(scratch, join(bundles, name), { recursive: true });
  } else if (
    readdirSync(bundles).join() !== name ||
    nameOf(filesIn(join(bundles, name))) !== name
  ) {
    throw new Error(
      'web/explorer/dist does not match web/explorer/: run `npm run explorer` and commit the result.',
    );
  }
} finally {
  rmSync(scratch, { recursive: true });
}
