import { LRUCache } from 'lru-cache';
import { type Deadline, noDeadline } from '../../deadline.ts';
import type { KeyObserver } from '../../runtime/telemetry/observers.ts';
import type { Database } from '../../storage/database/database.ts';
import type { Batches } from '../../storage/records/batches.ts';
import type { Statement } from '../../storage/records/sql.ts';
import { WriteBehind } from '../write-behind.ts';
import { KeyScope } from './api-key.entity.ts';
import { FailureLimit } from './failure-limit.ts';
import { hashSecret, type PresentedKey } from './secret.ts';

/** The caller: a stored key, or the key from the configuration (id 0). */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly scope: KeyScope;
  /** The first characters of the secret that the caller sent: after a rotation there are two. */
  readonly hint?: string | undefined;
}

export interface AuthenticatorOptions {
  /** A secret that is valid as long as the configuration contains it; it is not stored. */
  bootstrapKey?: string | undefined;
  failures?: FailureLimit;
  observer?: KeyObserver | undefined;
  /** Called when the secret from the configuration is used from an address for the first time. */
  onBootstrapUse?: ((address: string) => void) | undefined;
}

/** The result of a look-up. */
interface FoundKey {
  readonly caller: Caller;
  /** `performance.now()` when the look-up began: setting the clock does not extend the life of a look-up. */
  readonly lookedUpAt: number;
  /** The time (`Date.now()`) from which the secret is rejected. */
  readonly validUntil: number;
}

/** How long (ms) a look-up is cached. Under a second, so that a revocation takes effect everywhere within one. */
const freshFor = 900;
const lookUps = {
  collection: 'api_key',
  operation: 'look_up',
  maxBatch: 256,
  maxInFlight: 4,
  patience: 100,
  isRetryable: () => false,
};
const bootstrapCaller: Caller = { id: 0, name: 'bootstrap', scope: KeyScope.write };

/** Finds the caller of a key. */
export class Authenticator {
  /** When keys were last used. */
  readonly uses: WriteBehind<KeyUse>;
  /** Secrets that were valid at their last look-up, however long ago. */
  readonly #found = new LRUCache<string, FoundKey>({ max: 10_000 });
  /** Secrets without a key. A key never becomes valid again, so a short memory only saves look-ups. */
  readonly #rejected = new LRUCache<string, true>({ max: 10_000, ttl: 10_000 });
  /** The client addresses that have used the bootstrap key. */
  readonly #bootstrapAddresses = new LRUCache<string, true>({ max: 1000 });
  readonly #bootstrapHash: string | undefined;
  readonly #options: AuthenticatorOptions;
  readonly #failures: FailureLimit;
  readonly #lookUps: Batches<string, FoundKey | null>;

  constructor(database: Database, options: AuthenticatorOptions = {}) {
    this.#options = options;
    this.#failures = options.failures ?? new FailureLimit(0);
    this.#bootstrapHash = options.bootstrapKey && hashSecret(options.bootstrapKey);
    this.#lookUps = database.batched((hashes) => selectKeys(database, hashes), lookUps);
    this.uses = new WriteBehind(
      (uses) => database.rows(touchKeys, [uses.map(({ keyId }) => keyId), uses.map(({ at }) => at)]),
      (_earlier, later) => later,
    );
  }

  /**
   * The caller of this key; null when it is unknown, mistyped, expired or revoked. The answer is a promise only when
   * the database has to be asked: about once a second for a key in use, every ten seconds for a wrong one.
   *
   * @param address of the client: wrong keys are limited by it, except one that was valid at its last look-up.
   * @throws StoreError SERVICE_UNAVAILABLE, TOO_MANY_REQUESTS
   */
  lookUp(key: PresentedKey, address: string, deadline: Deadline = noDeadline): Caller | null | Promise<Caller | null> {
    const found = this.#found.get(key.hash);
    if (found && performance.now() - found.lookedUpAt < freshFor) return callerOf(found);
    const isBootstrap = key.hash === this.#bootstrapHash;
    if (isBootstrap && this.#bootstrapAddresses.has(address)) return bootstrapCaller;
    const mayExist = key.mayBeIssued || (this.#bootstrapHash !== undefined && key.mayBeBootstrap);
    if (!mayExist || this.#rejected.has(key.hash)) return null;
    return found ? this.#ask(key, deadline) : this.#askWithinLimit(key, address, deadline);
  }

  async #askWithinLimit(key: PresentedKey, address: string, deadline: Deadline): Promise<Caller | null> {
    await this.#failures.assertBelow(address);
    if (key.hash === this.#bootstrapHash) {
      if (!this.#bootstrapAddresses.has(address)) this.#options.onBootstrapUse?.(address);
      this.#bootstrapAddresses.set(address, true);
      return bootstrapCaller;
    }
    const caller = key.mayBeIssued ? await this.#ask(key, deadline) : null;
    if (!caller) {
      this.#rejected.set(key.hash, true);
      await this.#failures.count(address, key.hash);
    }
    return caller;
  }

  async #ask({ hash, hint }: PresentedKey, deadline: Deadline): Promise<Caller | null> {
    const found = await this.#lookUps.add(hash, deadline).catch((error) => {
      this.#options.observer?.lookedUp('failed');
      throw error;
    });
    this.#options.observer?.lookedUp(found ? 'known' : 'unknown');
    const caller = found && callerOf(found);
    if (!found || !caller) {
      this.#found.delete(hash);
      this.#rejected.set(hash, true);
      return null;
    }
    const known = { ...found, caller: { ...caller, hint } };
    this.#found.set(hash, known);
    this.uses.add(`${caller.id}`, { keyId: caller.id, at: new Date() });
    return known.caller;
  }
}

function callerOf({ caller, validUntil }: FoundKey): Caller | null {
  return Date.now() < validUntil ? caller : null;
}

interface KeyUse {
  keyId: number;
  at: Date;
}

const touchKeys: Statement = {
  name: 'touch_keys',
  text: `
    update api_key set last_used_at = greatest(last_used_at, used.at)
    from unnest($1::int[], $2::timestamptz[]) as used (id, at) where api_key.id = used.id`,
};

const selectKeysByHash: Statement = {
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
 * A replica may answer; a key that it does not know may have been issued a moment ago, so the primary has the last word.
 *
 * @returns the key of every hash, current or before a rotation; null when there is none.
 */
async function selectKeys(database: Database, hashes: string[]): Promise<Array<FoundKey | null>> {
  const lookedUpAt = performance.now();
  const found = new Map<string, FoundKey>();
  const learn = (rows: KeyRow[]) => {
    for (const [hash, id, name, scope, expires, replaced] of rows) {
      const validUntil = Math.min(timeOf(expires), timeOf(replaced));
      found.set(hash, { caller: { id: Number(id), name, scope }, lookedUpAt, validUntil });
    }
  };
  const wanted = [...new Set(hashes)];
  let isReplica = false;
  const noteServer = (node: string) => {
    isReplica = node !== 'primary';
  };
  learn(await database.read<KeyRow>(selectKeysByHash, [wanted], noteServer));
  const unknown = wanted.filter((hash) => !found.has(hash));
  if (isReplica && unknown.length > 0) learn(await database.rows<KeyRow>(selectKeysByHash, [unknown]));
  return hashes.map((hash) => found.get(hash) ?? null);
}

function timeOf(milliseconds: string | null): number {
  return milliseconds === null ? Number.POSITIVE_INFINITY : Number(milliseconds);
}
