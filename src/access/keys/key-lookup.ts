import type { Database } from '../../storage/database/database.ts';
import type { Statement } from '../../storage/records/statement.ts';
import type { KeyScope } from './api-key.entity.ts';

/** The caller: a stored key, or the key from the configuration (id 0). */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly scope: KeyScope;
  /** The first characters of the secret that it has sent: after a rotation there are two. */
  readonly hint?: string | undefined;
}

/** The result of a look-up. */
export interface KnownKey {
  caller: Caller;
  /** `performance.now()` when the look-up began: a clock that is set does not extend the life of a look-up. */
  lookedUpAt: number;
  /** The time (`Date.now()`) from which the secret is rejected. */
  validUntil: number;
}

/** How long (ms) a look-up is cached. Under a second, so that a revocation is in force everywhere within one. */
const believedFor = 900;

export function isBelieved({ lookedUpAt }: KnownKey): boolean {
  return performance.now() - lookedUpAt < believedFor;
}

const selectKeys: Statement = {
  name: 'select_keys',
  text: `
    select wanted.hash, id, name, scope,
      extract(epoch from expires_at) * 1000,
      case when previous_hash = wanted.hash then extract(epoch from previous_expires_at) * 1000 end
    from unnest($1::text[]) as wanted (hash)
    join api_key on api_key.hash = wanted.hash or api_key.previous_hash = wanted.hash
    where revoked_at is null`,
};

type KeyRow = [
  hash: string,
  id: string,
  name: string,
  scope: KeyScope,
  expires: string | null,
  replaced: string | null,
];

/**
 * A replica may be asked; what it does not know yet may have been issued a moment ago, so the primary has the last word.
 *
 * @returns the key of every hash, current or before a rotation; null when there is none.
 */
export async function lookUpKeys(database: Database, hashes: string[]): Promise<Array<KnownKey | null>> {
  const lookedUpAt = performance.now();
  const found = new Map<string, KnownKey>();
  const learn = (rows: KeyRow[]) => {
    for (const [hash, id, name, scope, expires, replaced] of rows) {
      const validUntil = Math.min(timeOf(expires), timeOf(replaced));
      found.set(hash, { caller: { id: Number(id), name, scope }, lookedUpAt, validUntil });
    }
  };
  const wanted = [...new Set(hashes)];
  let isAskedElsewhere = false;
  const noteServer = (node: string) => {
    isAskedElsewhere = node !== 'primary';
  };
  learn(await database.read<KeyRow>(selectKeys, [wanted], noteServer));
  const unknown = wanted.filter((hash) => !found.has(hash));
  if (isAskedElsewhere && unknown.length > 0) learn(await database.rows<KeyRow>(selectKeys, [unknown]));
  return hashes.map((hash) => found.get(hash) ?? null);
}

function timeOf(milliseconds: string | null): number {
  return milliseconds === null ? Number.POSITIVE_INFINITY : Number(milliseconds);
}
