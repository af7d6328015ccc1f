import type { Module } from '#engine/api/module.js';
import type { Database } from '#engine/database/database.js';
import { csvColumnsOf, formats } from '#engine/features/transfer/formats.js';
import { importLines } from '#engine/features/transfer/import.js';
import type { Transfer } from '#engine/features/transfer/types.js';
import { sql } from './database-access.ts';

/**
 * Exports the first collection of a module, empties its table, and imports the
 * file. @returns the lines that were refused, with the reasons
 */
export async function exportAndImport(
  database: Database,
  { open }: Module,
  table: string,
  format: keyof typeof formats,
): Promise<unknown[]> {
  const { resources = [] } = open({ database } as never);
  const [collection] = resources.flatMap(({ collections }) => collections);
  const { item, service } = collection as NonNullable<typeof collection>;
  const { items } = await service.list({ limit: 100 } as never);
  const { head, write, read, hasOnlyTexts } = formats[format];
  const columns = csvColumnsOf(item);
  const file = Buffer.from(head(columns) + write(columns, items));
  await sql(database, `truncate "${table}" restart identity`);
  async function* bytes() {
    yield file;
  }
  const refused: unknown[] = [];
  await importLines(
    read(bytes(), columns, 100_000),
    {
      collection,
      progress: () => undefined,
      refused: (...one: unknown[]) => refused.push(one),
      signal: AbortSignal.timeout(60_000),
    } as unknown as Transfer,
    { isLenient: hasOnlyTexts },
  );
  return refused;
}
