import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setModes } from '../packages/embedded-postgres/src/modes.ts';

/**
 * A store with all tables and no rows, which new embedded stores are copied from: copying takes a fifth of a second,
 * unpacking PGlite's own and migrating it a second and a half. The last step of the build makes it.
 */
const build = join(import.meta.dirname, '..');

/** Named by what it is made of: one that is in use never changes. */
const folder = () => join(build, `prepared-store-${fingerprint()}`);

/** @returns its folder; undefined when this build has made none, or nobody needs one: there is a PostgreSQL. */
export function preparedStore({ url }: { url?: string | undefined } = {}): string | undefined {
  if (url) return undefined;
  const data = folder();
  return existsSync(data) ? data : undefined;
}

/** Makes it, unless it is there. */
export async function prepareStore(): Promise<void> {
  const data = folder();
  if (existsSync(data)) return;
  const dataDir = mkdtempSync(join(tmpdir(), 'animal-store-prepared-'));
  const copy = mkdtempSync(join(build, '.prepared-store-'));
  try {
    await migrated(dataDir);
    cpSync(join(dataDir, 'postgres'), copy, { recursive: true });
    // Whoever runs the service may be another user than whoever built it.
    setModes(copy, { folders: 0o755, files: 0o644 });
    const others = readdirSync(build).filter((name) => name.startsWith('prepared-store-'));
    renameSync(copy, data);
    for (const name of others) rmSync(join(build, name), { recursive: true, force: true });
  } catch (error) {
    rmSync(copy, { recursive: true, force: true });
    // Another build was faster.
    if (!existsSync(data)) throw error;
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

/** The parts that a folder depends on: the engine, this file, and the text of every migration. */
function fingerprint(): string {
  const require = createRequire(import.meta.url);
  const engine = readFileSync(join(dirname(require.resolve('@electric-sql/pglite')), '..', 'package.json'));
  const migrations = join(build, 'migrations');
  const hash = createHash('sha256')
    .update(engine)
    .update(readFileSync(import.meta.filename));
  for (const name of readdirSync(migrations).sort()) {
    if (name.endsWith('.js')) hash.update(name).update(readFileSync(join(migrations, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

/** Nobody makes further databases in an embedded store; what they would be copied from is most of its files. */
const withoutTemplates = [
  'update pg_database set datistemplate = false',
  'drop database template0',
  'drop database template1',
  'checkpoint',
];

async function migrated(dataDir: string): Promise<void> {
  // Only now, because most builds find nothing to do.
  const [{ loadConfig }, { Database }, { modelOf }, { modules }] = await Promise.all([
    import('./config.ts'),
    import('./storage/database/database.ts'),
    import('./mikro-orm.config.ts'),
    import('./modules.ts'),
  ]);
  const database = await Database.open(loadConfig({ DATA_DIR: dataDir }).database, modelOf(modules));
  try {
    await database.migrate();
    for (const text of withoutTemplates) await database.rows({ name: text, text }, []);
  } finally {
    await database.close();
  }
}
