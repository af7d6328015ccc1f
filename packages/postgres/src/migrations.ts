import { setTimeout as sleep } from 'node:timers/promises';
import type { Constructor, MigrationObject } from '@mikro-orm/core';
import type { Migration } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import type { EmbeddedPostgres } from '../../embedded-postgres/src/postgres.ts';
import { isConflict, sqlState } from './errors.ts';
import { type AssertHeld, withoutLimits } from './exclusive.ts';
import { type DatabaseOptions, type Model, ormOptions } from './options.ts';
import { endPool, poolOf, sessionsFor } from './sessions.ts';

/** How a migration waits for its locks. */
export interface MigrationRetries {
  /** How long (ms) one attempt waits. */
  lockTimeout: number;
  attempts: number;
  /** Average time (ms) between two attempts. */
  pause: number;
}

/**
 * A statement that waits for a table lock blocks all later statements, even reads. Two seconds are a fifth of
 * DATABASE_STATEMENT_TIMEOUT_MS, so blocked statements still succeed, and the pauses let others through. All attempts
 * together outlast a slow report, but not a backup.
 */
export const migrationRetries: MigrationRetries = { lockTimeout: 2000, attempts: 30, pause: 1500 };

/**
 * Applies pending migrations, each in one transaction together with its row in mikro_orm_migrations. A migration that
 * opts out (`isTransactional`) is tried once, without timeouts, because a failure may leave it half applied.
 *
 * @returns the names of those applied.
 */
export async function applyMigrations(
  options: DatabaseOptions,
  model: Model,
  embedded: EmbeddedPostgres | undefined,
  retries: MigrationRetries,
  assertHeld: AssertHeld,
): Promise<string[]> {
  const orm = new MikroORM(await migratorOptions(options, model, embedded, retries));
  const pool = await poolOf(orm);
  const applied: string[] = [];
  try {
    for (const { name } of await orm.migrator.getPending()) {
      await assertHeld();
      const began = performance.now();
      const up = () => orm.migrator.up({ migrations: [name] });
      await (isTransactional(orm, model, name) ? withLockRetries(up, name, retries, options) : up());
      options.log?.info({ migration: name, ms: Math.round(performance.now() - began) }, 'migration applied');
      applied.push(name);
    }
  } finally {
    await endPool(orm, pool);
  }
  return applied;
}

async function migratorOptions(
  options: DatabaseOptions,
  model: Model,
  embedded: EmbeddedPostgres | undefined,
  retries: MigrationRetries,
) {
  const migrationsList = model.migrations.map((migration) => withLimits(migration, retries));
  const { config } = await sessionsFor({ ...options, statementTimeout: 0 }, embedded);
  // For migrations without a transaction; the role may have a timeout. Poolers get no options.
  const session = config.options ? { options: `${config.options} -c lock_timeout=0` } : {};
  const { migrations, ...rest } = ormOptions(options, model, { ...config, ...session });
  return {
    ...rest,
    // One transaction for all would hold the first migration's locks until the last is done.
    migrations: { ...migrations, migrationsList, allOrNothing: false },
  };
}

/** Wraps a migration so that it first sets the timeouts of its transaction. */
function withLimits({ name, class: released }: MigrationObject, { lockTimeout }: MigrationRetries): MigrationObject {
  const Released = released as Constructor<Migration>;
  class Limited extends Released {
    override async up(): Promise<void> {
      if (this.isTransactional()) {
        await this.execute(withoutLimits);
        await this.execute(`set local lock_timeout = ${lockTimeout}`);
      }
      // `super.up()` does not compile: `up` is abstract.
      await Released.prototype.up.call(this);
    }
  }
  return { name, class: Limited };
}

function isTransactional({ driver, config }: MikroORM, { migrations }: Model, name: string): boolean {
  const { class: Released } = migrations.find((migration) => migration.name === name) as MigrationObject;
  return new Released(driver, config).isTransactional();
}

/** Repeats a migration that did not get its locks; its transaction was rolled back. */
async function withLockRetries(
  up: () => Promise<unknown>,
  migration: string,
  { attempts, pause }: MigrationRetries,
  { log }: DatabaseOptions,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return void (await up());
    } catch (error) {
      // lock_not_available
      if (sqlState(error) !== '55P03' && !isConflict(error)) throw error;
      if (attempt === attempts) {
        const message =
          `The migration ${migration} did not get its locks in ${attempts} attempts; nothing of it was applied. ` +
          'A session holds a lock on its table: find it in pg_stat_activity, end it, and start again.';
        throw new Error(message, { cause: error });
      }
      log?.warn({ migration, attempt }, 'a migration is waiting for a lock');
      await sleep(pause * (0.5 + Math.random()));
    }
  }
}

/** The error when a table or column is missing although every listed migration is applied. */
export function lacksMigration(error: Error): Error {
  const { message } = (error.cause ?? error) as Error;
  return new Error(
    `A table or column of an entity has no migration (${message}). Write one ` +
      '(`npm run migration:create -- --name=create_...`), and list it in the `migrations` of its module.',
  );
}
