import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Migration } from '@mikro-orm/migrations';

// Lints the SQL of every migration with squawk (https://squawkhq.com), against
// statements that would block the running service or break nodes of the
// previous release. `tools/squawk.toml` has the rules; arguments are folders of
// migrations.

/**
 * A driver that records the statements that a migration executes immediately.
 */
const recorder = (statements: string[]) => ({
  execute: async (sql: string) => void statements.push(sql),
});

async function sqlOf(
  path: string,
): Promise<{ sql: string; isTransactional: boolean }> {
  const [Class] = Object.values(await import(pathToFileURL(path).href)) as [
    new (...args: unknown[]) => Migration,
  ];
  const executed: string[] = [];
  const migration = new Class(recorder(executed), {});
  await migration.up();
  const statements = [...executed, ...migration.getQueries()].map(
    (statement) => {
      if (typeof statement !== 'string')
        throw new Error(
          `${path}: a migration is written in SQL, so that it can be read.`,
        );
      return `${statement.trim().replace(/;$/, '')};\n`;
    },
  );
  return {
    sql: statements.join('\n'),
    isTransactional: migration.isTransactional(),
  };
}

function lint(name: string, sql: string, isTransactional: boolean): boolean {
  const scratch = mkdtempSync(join(tmpdir(), 'animal-store-migrations-'));
  const file = join(scratch, `${name}.sql`);
  writeFileSync(file, sql);
  const options = [
    '--config',
    resolve('tools/squawk.toml'),
    ...(isTransactional ? ['--assume-in-transaction'] : []),
  ];
  const { status, stdout, stderr, error } = spawnSync(
    resolve('tools/node_modules/.bin/squawk'),
    [...options, file],
    {
      encoding: 'utf8',
    },
  );
  rmSync(scratch, { recursive: true });
  if (error) throw error;
  if (status !== 0) process.stderr.write(`${stdout}${stderr}`);
  return status === 0;
}

const folders =
  process.argv.length > 2
    ? process.argv.slice(2)
    : ['migrations', 'packages/engine/src/migrations'];
for (const folder of folders) {
  for (const file of readdirSync(folder).filter((name) =>
    name.endsWith('.ts'),
  )) {
    const { sql, isTransactional } = await sqlOf(resolve(folder, file));
    if (!lint(file.replace(/\.ts$/, ''), sql, isTransactional))
      process.exitCode = 1;
  }
}
