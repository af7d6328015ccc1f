import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
// Runs in builds alone, which have the development dependencies.
import { build, type Plugin } from 'esbuild';

const monaco = 'monaco-editor/esm/vs';

/** Bundles GraphiQL: `page.js`, `page.css`, Monaco's workers, what they load, and all of it compressed. */
export async function bundler(sources: string, folder: string): Promise<void> {
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
    plugins: [withoutStylesOfMonaco],
  });
  for (const name of readdirSync(folder)) {
    if (/\.(?:js|css)$/.test(name)) compress(join(folder, name));
  }
}

/** GraphiQL's own style sheet contains them. */
const withoutStylesOfMonaco: Plugin = {
  name: 'without-styles-of-monaco',
  setup({ onLoad }) {
    onLoad({ filter: /monaco-editor.+\.css$/ }, () => ({ contents: '', loader: 'empty' }));
  },
};

function compress(file: string): void {
  const content = readFileSync(file);
  // A quality beyond 6 takes seconds, and saves little.
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }));
  writeFileSync(`${file}.gz`, gzipSync(content));
}
