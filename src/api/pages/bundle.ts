import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** GraphiQL for browsers: the scripts, styles and workers that the build makes of `explorer/`. */
export interface Bundle {
  folder: string;
  /** Stands for all that it is made of, and is the name of its folder. */
  version: string;
}

const root = join(import.meta.dirname, '../../../..');
const sources = join(root, 'explorer');
const bundles = join(root, 'dist/graphiql');

/** @returns undefined when this build has made none. */
export function bundle(): Bundle | undefined {
  const [version] = versions();
  return version === undefined ? undefined : { folder: join(bundles, version), version };
}

/** Makes it, unless it is there, or nothing that it could be made of. */
export async function makeBundle(): Promise<void> {
  if (!existsSync(sources)) return;
  const folder = join(bundles, fingerprint());
  if (existsSync(folder)) return;
  // Only now, because most builds find nothing to do.
  const { bundler } = await import('./bundler.ts');
  mkdirSync(bundles, { recursive: true });
  const copy = mkdtempSync(join(bundles, '.'));
  try {
    await bundler(sources, copy);
    // Whoever runs the service may be another user than whoever built it.
    chmodSync(copy, 0o755);
    const others = versions();
    renameSync(copy, folder);
    for (const name of others) rmSync(join(bundles, name), { recursive: true, force: true });
  } catch (error) {
    rmSync(copy, { recursive: true, force: true });
    // Another build was faster.
    if (!existsSync(folder)) throw error;
  }
}

function versions(): string[] {
  return existsSync(bundles) ? readdirSync(bundles).filter((name) => !name.startsWith('.')) : [];
}

/** The parts that it depends on: its sources, the bundler, and the packages. */
function fingerprint(): string {
  const own = readdirSync(sources, { withFileTypes: true }).filter((entry) => entry.isFile());
  const files = [
    ...own.map(({ name }) => join(sources, name)).sort(),
    import.meta.filename.replace('bundle.js', 'bundler.js'),
    join(root, 'package-lock.json'),
  ];
  const hash = createHash('sha256');
  for (const file of files) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}
