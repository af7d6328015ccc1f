import type { Database, Statement } from '../database/database.ts';
import type { KeyScope } from './api-key.entity.ts';

/** Who is calling: a stored key, or the one from the configuration (id 0). */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly scope: KeyScope;
}

/** What a look-up found. */
export interface KnownKey {
  caller: Caller;
  /** The clock (ms) at which the look-up began. */
  lookedUpAt: number;
  /** The clock (ms) from which the secret is refused. */
  validUntil: number;
}

/** How long (ms) a look-up is believed. Under a second, so that a revocation is in force everywhere within one. */
const believedFor = 900;

export function isBelieved({ lookedUpAt }: KnownKey): boolean {
  // A clock that was set back must not prolong a look-up's life.
  return Math.abs(Date.now() - lookedUpAt) < believedFor;
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

/** @returns for every hash the key that it belongs to, now or before a rotation; null when there is none. */
export async function lookUpKeys(database: Database, hashes: string[]): Promise<Array<KnownKey | null>> {
  const lookedUpAt = Date.now();
  const found = new Map<string, KnownKey>();
  for (const [hash, id, name, scope, expires, replaced] of await database.rows<KeyRow>(selectKeys, [
    [...new Set(hashes)],
  ])) {
    const validUntil = Math.min(timeOf(expires), timeOf(replaced));
    found.set(hash, { caller: { id: Number(id), name, scope }, lookedUpAt, validUntil });
  }
  return hashes.map((hash) => found.get(hash) ?? null);
}

function timeOf(milliseconds: string | null): number {
  return milliseconds === null ? Number.POSITIVE_INFINITY : Number(milliseconds);
}
