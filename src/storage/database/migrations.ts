import type { Constructor, MigrationObject } from '@mikro-orm/core';
import type { Migration } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import { retry } from '../../runtime/retry.ts';
import { endPool, poolOf, sessionsFor } from './connections.ts';
import { sqlState } from './errors.ts';
import { type AssertHeld, withoutLimits } from './exclusive.ts';
import { type DatabaseOptions, type EmbeddedPostgres, type Log, type Model, ormOptions } from './options.ts';

/** How patiently a migration waits for a lock. */
export interface MigrationPatience {
  /** How long (ms) it waits at a time. */
  lockTimeout: number;
  attempts: number;
  /** How long (ms) between two attempts, give or take a half. */
  pause: number;
}

/**
 * A statement that waits for a table makes all later ones wait behind it, even reads. Two seconds are a fifth of what a
 * statement may take (DATABASE_STATEMENT_TIMEOUT_MS), so that all of them are answered; in the pauses they are served.
 * All attempts together outlast a slow report, but not a backup.
 */
export const migrationPatience: MigrationPatience = { lockTimeout: 2000, attempts: 30, pause: 1500 };

interface Migrating {
  options: DatabaseOptions;
  model: Model;
  embedded: EmbeddedPostgres | undefined;
  assertHeld: AssertHeld;
  patience: MigrationPatience;
}

/**
 * Applies pending migrations, each in a transaction of its own together with its row in mikro_orm_migrations. One that
 * opts out (`isTransactional`) is tried once, without limits: when it fails it may have done a part of its work.
 *
 * @returns the names of those applied.
 */
export async function applyMigrations(migrating: Migrating): Promise<string[]> {
  const { options, model, embedded, assertHeld, patience } = migrating;
  const orm = new MikroORM(await migratorOptions(options, model, embedded, patience));
  const pool = await poolOf(orm);
  const applied: string[] = [];
  try {
    for (const { name } of await orm.migrator.getPending()) {
      await assertHeld();
      const began = performance.now();
      const up = () => orm.migrator.up({ migrations: [name] });
      await (isTransactional(orm, model, name) ? patiently(up, name, patience, options.log) : up());
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
  patience: MigrationPatience,
) {
  const migrationsList = model.migrations.map((migration) => withLimits(migration, patience));
  const { config } = await sessionsFor({ ...options, statementTimeout: 0 }, embedded);
  // For those that opt out of a transaction; the role may have a limit. Poolers get no options.
  const session = config.options ? { options: `${config.options} -c lock_timeout=0` } : {};
  const { migrations, ...rest } = ormOptions(options, model, { ...config, ...session });
  return {
    ...rest,
    // One transaction for all would hold the locks of the first until the last is done.
    migrations: { ...migrations, migrationsList, allOrNothing: false },
  };
}

/** The same migration, which sets the limits of its transaction first. */
function withLimits({ name, class: released }: MigrationObject, { lockTimeout }: MigrationPatience): MigrationObject {
  const Released = released as Constructor<Migration>;
  class Limited extends Released {
    override async up(): Promise<void> {
      if (this.isTransactional()) {
        await this.execute(withoutLimits);
        await this.execute(`set local lock_timeout = ${lockTimeout}`);
      }
      // TypeScript knows `up` as abstract, which `super` may not call.
      await Released.prototype.up.call(this);
    }
  }
  return { name, class: Limited };
}

function isTransactional({ driver, config }: MikroORM, { migrations }: Model, name: string): boolean {
  const { class: Released } = migrations.find((migration) => migration.name === name) as MigrationObject;
  return new Released(driver, config).isTransactional();
}

/** Repeats a migration that did not get its locks: its transaction has left nothing. */
async function patiently(
  up: () => Promise<unknown>,
  migration: string,
  { attempts, pause }: MigrationPatience,
  log: Log | undefined,
): Promise<void> {
  await retry(up, {
    pause: () => pause,
    isWorthIt(error, attempt) {
      // lock_not_available, deadlock_detected, serialization_failure
      const lacksLock = ['55P03', '40P01', '40001'].includes(`${sqlState(error)}`);
      if (!lacksLock || attempt < attempts) return lacksLock;
      const message =
        `The migration ${migration} did not get its locks in ${attempts} attempts; nothing of it was applied. ` +
        'A session holds a table that it changes: see pg_stat_activity, end that, and start again.';
      throw new Error(message, { cause: error });
    },
    onFailure: (_error, attempt) => log?.warn({ migration, attempt }, 'a migration waits for a lock'),
  });
}

/** The error when a table or column is missing although every listed migration is applied. */
export function lacksMigration(error: Error): Error {
  const { message } = (error.cause ?? error) as Error;
  return new Error(
    `No migration creates what an entity needs (${message}). Write one ` +
      '(`npm run migration:create -- --name=create_...`), and list it in the `migrations` of its module.',
  );
}
