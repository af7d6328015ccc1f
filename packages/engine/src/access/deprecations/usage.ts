import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { Caller } from '../../call.ts';
import type { Database, Statement } from '../../database/database.ts';
import type { KeyObserver } from '../../runtime/observers.ts';
import { WriteBehind } from '../write-behind.ts';

/** The table `deprecated_call`: which keys still call deprecated operations. */
export const DeprecatedCall = defineEntity({
  name: 'DeprecatedCall',
  tableName: 'deprecated_call',
  properties: {
    /** The caller's key; 0 is the bootstrap key. */
    keyId: p.integer().primary(),
    /** The operation's name in the API: `getBook`, `Query.book`. */
    operation: p.text().primary(),
    /** When the operation is removed. */
    removal: p.datetime(),
    calls: p.bigint('bigint'),
    lastCallAt: p.datetime(),
  },
});

export type DeprecatedCall = InferEntity<typeof DeprecatedCall>;

type Calls = Omit<DeprecatedCall, 'calls'> & { calls: number };
const columns = [
  'keyId',
  'operation',
  'removal',
  'calls',
  'lastCallAt',
] as const;

const addCalls: Statement = {
  name: 'add_deprecated_calls',
  // A retry would count twice.
  isWrite: true,
  text: `
    insert into deprecated_call as known (
      key_id, operation, removal, calls, last_call_at)
    select * from unnest($1::int[], $2::text[],
      $3::timestamptz[], $4::bigint[], $5::timestamptz[])
    on conflict (key_id, operation) do update set
      removal = excluded.removal,
      calls = known.calls + excluded.calls,
      last_call_at = greatest(known.last_call_at, excluded.last_call_at)`,
};

/**
 * Counts the calls of deprecated operations by key, in REST and GraphQL. A call
 * is never counted twice.
 */
export class DeprecationUsage {
  /**
   * The counts that are not written yet. After a failure they are kept, unless
   * they may have been stored.
   */
  readonly calls: WriteBehind<Calls>;

  constructor(
    database: Database,
    private readonly observers: readonly KeyObserver[],
  ) {
    this.calls = new WriteBehind(
      (calls) =>
        database.rows(
          addCalls,
          columns.map((column) => calls.map((one) => one[column])),
        ),
      (earlier, later) => ({ ...later, calls: earlier.calls + later.calls }),
    );
  }

  /**
   * Counts a call.
   *
   * @param operation the name in the API: `getBook`, `Query.book`
   */
  called({ id: keyId, name }: Caller, operation: string, removal: Date) {
    this.calls.add(`${keyId} ${operation}`, {
      keyId,
      operation,
      removal,
      calls: 1,
      lastCallAt: new Date(),
    });
    for (const observer of this.observers)
      observer.deprecatedCall(operation, name);
  }
}
