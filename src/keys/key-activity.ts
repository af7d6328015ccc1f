import type { Database, Statement } from '../database/database.ts';
import { DeprecatedCall } from './deprecated-call.entity.ts';

interface Calls {
  keyId: number;
  operation: string;
  removal: Date;
  calls: number;
  lastCallAt: Date;
}

const touchKeys: Statement = {
  name: 'touch_keys',
  text: `
    update api_key set last_used_at = greatest(last_used_at, used.at)
    from unnest($1::int[], $2::timestamptz[]) as used (id, at) where api_key.id = used.id`,
};

const addCalls: Statement = {
  name: 'add_deprecated_calls',
  text: `
    insert into deprecated_call as known (key_id, operation, removal, calls, last_call_at)
    select * from unnest($1::int[], $2::text[], $3::timestamptz[], $4::bigint[], $5::timestamptz[])
    on conflict (key_id, operation) do update set
      removal = excluded.removal,
      calls = known.calls + excluded.calls,
      last_call_at = greatest(known.last_call_at, excluded.last_call_at)`,
};

/**
 * What keys do, gathered in memory and written now and then: no request waits for it. What was gathered since the last
 * `flush` is lost when the process is killed.
 */
export class KeyActivity {
  readonly #database: Database;
  #used = new Map<number, Date>();
  #calls = new Map<string, Calls>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Notes that a stored key was used just now. */
  used(keyId: number): void {
    this.#used.set(keyId, new Date());
  }

  /** Notes a call of a deprecated operation. */
  calledDeprecated(keyId: number, operation: string, removal: Date): void {
    const key = `${keyId} ${operation}`;
    const calls = (this.#calls.get(key)?.calls ?? 0) + 1;
    this.#calls.set(key, { keyId, operation, removal, calls, lastCallAt: new Date() });
  }

  /** Writes what was gathered; when that fails, it is kept for the next time. */
  async flush(): Promise<void> {
    const [used, calls] = [[...this.#used], [...this.#calls.values()]];
    this.#used = new Map();
    this.#calls = new Map();
    try {
      if (used.length > 0) await this.#database.rows(touchKeys, [used.map(([id]) => id), used.map(([, at]) => at)]);
      used.length = 0;
      if (calls.length > 0) await this.#database.rows(addCalls, columnsOf(calls));
    } catch (error) {
      this.#restore(used, calls);
      throw error;
    }
  }

  /** Who calls what is deprecated, the most recent first. */
  async deprecatedCalls(): Promise<DeprecatedCall[]> {
    return this.#database.orm.em.fork().find(DeprecatedCall, {}, { orderBy: { lastCallAt: 'desc' } });
  }

  #restore(used: Array<[number, Date]>, calls: Calls[]): void {
    this.#used = new Map([...used, ...this.#used]);
    for (const lost of calls) {
      const key = `${lost.keyId} ${lost.operation}`;
      const newer = this.#calls.get(key);
      this.#calls.set(key, newer ? { ...newer, calls: newer.calls + lost.calls } : lost);
    }
  }
}

function columnsOf(calls: Calls[]): unknown[] {
  return [
    calls.map(({ keyId }) => keyId),
    calls.map(({ operation }) => operation),
    calls.map(({ removal }) => removal),
    calls.map(({ calls }) => calls),
    calls.map(({ lastCallAt }) => lastCallAt),
  ];
}
