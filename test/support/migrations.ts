import type { MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';
import { Database } from '#engine/database/database.js';
import { complete } from '#engine/feature.js';
import { modelOf } from '#engine/process/model.js';
import { optionsFor, type TestDatabase } from './database.ts';
import { features, modules } from './features.ts';

/**
 * A migration of the next release. @param isTransactional false for one that
 * opts out of its transaction
 */
export function migrationOf(
  name: string,
  statements: string[],
  isTransactional = true,
): MigrationObject {
  class Next extends Migration {
    override up(): void {
      for (const statement of statements) this.addSql(statement);
    }

    override isTransactional(): boolean {
      return isTransactional;
    }
  }
  return { name, class: Next };
}

/** A line in the log of the database. */
export type Line = [message: string, fields: Record<string, unknown>];

/** A node of the next release that has not migrated yet, and its log. */
export interface Node {
  database: Database;
  lines: Line[];
}

/** @param more the migrations of the next release. */
export async function openNode(
  { env }: Pick<TestDatabase, 'env'>,
  more: MigrationObject[] = [],
  further: Record<string, string> = {},
): Promise<Node> {
  const lines: Line[] = [];
  const note = (fields: object, message: string) =>
    void lines.push([message, fields as Record<string, unknown>]);
  const whole = complete({ modules: async () => modules, features });
  const model = modelOf(await whole.modules());
  const options = {
    ...(await optionsFor({ ...env, ...further })),
    log: { info: note, warn: note },
  };
  const database = await Database.open(options, {
    ...model,
    migrations: [...model.migrations, ...more],
  });
  return { database, lines };
}
