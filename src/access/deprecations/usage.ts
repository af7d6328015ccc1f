import type { Database } from '../../storage/database/database.ts';
import { Gathered } from '../../storage/database/gathered.ts';
import type { Statement } from '../../storage/records/statement.ts';
import type { Caller } from '../keys/key-lookup.ts';
import { DeprecatedCall } from './deprecated-call.entity.ts';

interface Calls {
  keyId: number;
  operation: string;
  removal: Date;
  calls: number;
  lastCallAt: Date;
}

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

export interface DeprecationUsageOptions {
  /** Called for every call, with the name of the caller's key. */
  onCall?: ((operation: string, key: string) => void) | undefined;
}

/** Counts the calls of deprecated operations, in REST and GraphQL. */
export class DeprecationUsage {
  readonly #database: Database;
  readonly #calls: Gathered<Calls>;
  readonly #onCall: DeprecationUsageOptions['onCall'];

  constructor(database: Database, { onCall }: DeprecationUsageOptions = {}) {
    this.#database = database;
    this.#onCall = onCall;
    this.#calls = new Gathered<Calls>(
      (calls) => database.rows(addCalls, columnsOf(calls)),
      (earlier, later) => ({ ...later, calls: earlier.calls + later.calls }),
    );
  }

  /** Counts a call. @param operation the name in the API: `getPet`, `Query.pet` */
  called({ id: keyId, name }: Caller, operation: string, removal: Date): void {
    this.#calls.add(`${keyId} ${operation}`, { keyId, operation, removal, calls: 1, lastCallAt: new Date() });
    this.#onCall?.(operation, name);
  }

  /** Writes the collected counts. @throws the database's error; the counts are kept */
  flush(): Promise<void> {
    return this.#calls.flush();
  }

  /** The most recently called first. */
  async list(): Promise<DeprecatedCall[]> {
    return this.#database.orm.em.fork().find(DeprecatedCall, {}, { orderBy: { lastCallAt: 'desc' } });
  }
}

function columnsOf(calls: Calls[]): unknown[] {
  const members = ['keyId', 'operation', 'removal', 'calls', 'lastCallAt'] as const;
  return members.map((member) => calls.map((call) => call[member]));
}
