import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EntityName } from '@mikro-orm/core';
import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import { type DatabaseError, escapeIdentifier as quoted } from 'pg';
import { openTransaction } from '../call.ts';
import { badInput, StoreError } from '../errors.ts';
import { orderLocks, type RowOrder } from './order.ts';
import {
  isDataError,
  noSuch,
  sqlState,
  unavailable,
} from './postgres-errors.ts';
import { asText, type RunStatement, type Send } from './postgres-server.ts';
import { tenantIn } from './tenant-keys.ts';
import { isOvertaken } from './through.ts';

export type Work<Answer> = (em: EntityManager) => Promise<Answer>;

/** What a transaction says of itself. */
export interface Frame {
  /**
   * The entities of which it creates rows. Those that live lists follow become
   * visible in the order of their ids (`order.ts`). Locks are taken first, and
   * in one order, so that no two transactions wait for each other there.
   */
  readonly creates: readonly EntityName[];
  /**
   * The validated input. With the idempotency key of the call, the same input
   * gets the same answer. Without it, one that creates refuses a key.
   */
  readonly input?: object;
}

/** Runs statements in the connection of a transaction, one after the other. */
export class Transaction {
  readonly listeners: Array<() => void> = [];
  readonly em: EntityManager;
  #isOpen = true;
  /** The first error of a statement, after which PostgreSQL refuses others. */
  #failure: unknown;
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** @param tables those in which it creates rows; undefined for any */
  constructor(
    orm: MikroORM,
    private readonly tables:
      | ReadonlyMap<string, RowOrder | undefined>
      | undefined,
    private readonly send: Send,
  ) {
    this.em = orm.em.fork();
    this.em.setTransactionContext({
      executeQuery: ({ sql }: { sql: string }) => this.#execute(sql),
      savepoint: () => {
        throw nestedTransaction();
      },
    } as never);
  }

  readonly rows: RunStatement = async ({ text }, values) =>
    (await this.#send({ text, values, rowMode: 'array', types: asText })).rows;

  assertCreates(table: string) {
    if (this.tables?.has(table) ?? true) return;
    throw new Error(
      `The transaction must name the entity of ${table} in its \`creates\`.`,
    );
  }

  /** @throws the error of a statement, even if the work ignores it */
  async run<Answer>(work: Work<Answer>) {
    try {
      await this.#keepOrder();
      const answer = await openTransaction.run(this, () => work(this.em));
      // What it does not await reaches its first statement.
      await nextTurn();
      const isAwaited = this.#pending === 0;
      await this.em.flush();
      while (this.#pending > 0) await this.#last;
      if (this.#failure) throw this.#failure;
      if (isAwaited) return answer;
      throw new Error('The transaction must await all that it does.');
    } catch (error) {
      throw this.reasonOf(error);
    }
  }

  /** The error of a statement, which MikroORM has wrapped. */
  reasonOf(error: unknown) {
    return error instanceof StoreError ? error : (this.#failure ?? error);
  }

  end() {
    this.#isOpen = false;
  }

  async #keepOrder() {
    for (const order of ['locked', 'marked'] as const) {
      const tables = [...(this.tables ?? [])].filter(
        ([, own]) => own === order,
      );
      const names = tables.map(([name]) => name);
      if (names.length > 0) await this.rows(orderLocks[order], [names]);
    }
  }

  async #execute(text: string) {
    const [, table] = /^insert into (?:"[^"]+"\.)?"([^"]+)"/i.exec(text) ?? [];
    if (table) this.assertCreates(table);
    const { rows, rowCount } = await this.#send({ text });
    return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
  }

  /** Sends a query after those before it. */
  async #send(query: Parameters<Send>[0]) {
    const sent = this.#last.then(() => {
      if (this.#failure) throw this.#failure;
      if (this.#isOpen) return this.send(query);
      throw new Error('The transaction has ended: await what it does.');
    });
    this.#pending += 1;
    this.#last = sent
      .catch((error) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#pending -= 1;
      });
    return sent;
  }
}

export const nestedTransaction = () =>
  new Error('A transaction is open here, and contains no other.');

export const ruleBroken = 'A rule of the database refuses this.';
const tooLong = 'Its texts are too long for an index.';
const tooLarge = 'It is too large for the database.';
/** Routines of PostgreSQL that make entries of an index. */
const ofIndex = /^_|index|^(?:brin|gin|gist|spg)/i;

/**
 * Errors of a row that name no key: a check constraint; an expression that has
 * no value for it (class 22), as a range that ends before it begins; a trigger
 * that raises (P0001), or drops the row (22012 of `areAllIn`); a row too large
 * for a page, an index or a value; a policy of row security.
 */
function refusalOfRow(error: unknown, table: string | undefined) {
  const { routine } = error as Partial<DatabaseError>;
  const state = `${sqlState(error)}`;
  // 2200H is a sequence without a further value.
  const isData = /^22(?!00H)/.test(state) && table !== undefined;
  if (isData || /^(?:23514|44000|P0001)$/.test(state))
    return badInput(ruleBroken, error);
  if (state === '54000')
    return badInput(ofIndex.test(`${routine}`) ? tooLong : tooLarge, error);
  const isPolicy = state === '42501' && routine === 'ExecWithCheckOptions';
  if (isPolicy)
    return new StoreError('FORBIDDEN', ruleBroken, { cause: error });
  return undefined;
}

/** The tables, and the members of each that some callers do not see. */
interface Refusing {
  readonly orm: MikroORM;
  readonly hiding: ReadonlyMap<string, readonly string[]>;
}

/**
 * Converts the error of a row that PostgreSQL refuses: a foreign, unique or
 * exclusive key, or a rule of the database; other errors stay as they are. A
 * key with a member that some callers do not see is not named.
 *
 * @param table of the row; by default the one that PostgreSQL names, which may
 *   be a shard
 */
export function refusalIn(
  { orm, hiding }: Refusing,
  error: unknown,
  {
    table,
    isRemoval,
  }: Partial<DatabaseError> & { isRemoval?: boolean } = error as DatabaseError,
) {
  if (isOvertaken(error)) return unavailable(error, 'answer in time');
  const refusal = refusalOfRow(error, table);
  if (refusal || !isDataError(error)) return refusal ?? error;
  const { detail, table: referring } = error as Partial<DatabaseError>;
  // It begins with `Key (pet_id)=(42)`, the rest is in the server's language.
  // With row security there is none.
  const [, key] = /\((.+?)\)=\(/.exec(`${detail}`) ?? [];
  const entities = key ? [...orm.getMetadata()] : [];
  const entity = entities.find(({ tableName }) => tableName === table);
  const nameOf = (column: string) => {
    const text = column.startsWith('"') ? column : quoted(column);
    const props = entity?.props ?? [];
    return props.find(({ fieldNames }) => quoted(`${fieldNames}`) === text)
      ?.name;
  };
  const state = sqlState(error);
  // 23001 for `on delete restrict` since PostgreSQL 18.
  const isReference = state === '23503' || state === '23001';
  const tenant = isReference && entity && tenantIn(entity)?.name;
  const all = key?.split(', ').map(nameOf) ?? [];
  const names = all.filter((name) => !tenant || name !== tenant);
  // None for an index on an expression.
  const members = names.includes(undefined) ? '' : names.join(' and ');
  const hidden = hiding.get(`${table}`) ?? [];
  const isHidden = hidden.some((member) => names.includes(member));
  const what = (!isHidden && members) || 'value';
  const conflict = (message: string) =>
    new StoreError('CONFLICT', message, { cause: error });
  if (state === '23505' && members !== 'id')
    return conflict(`Another one has this ${what}.`);
  if (state === '23P01') return conflict(`Another one excludes this ${what}.`);
  if (!isReference) return error;
  const isOfAnother = members === '' && referring !== table;
  if (isRemoval || members === 'id' || isOfAnother)
    return conflict('It cannot be removed, because others refer to it.');
  return noSuch(members || 'A relation', error);
}
