import { LRUCache } from 'lru-cache';
import { type CallContext, unboundedCall } from '../../call-context.ts';
import type { Batches, Database, Statement } from '../../database/database.ts';
import { StoreError } from '../../errors.ts';
import type { KeyObserver } from '../../runtime/telemetry/observers.ts';
import type { FailureLimit } from '../limits/failure-limit.ts';
import { WriteBehind } from '../write-behind.ts';
import { KeyScope } from './api-key.entity.ts';
import { hashSecret, hintOf, isSecret, shortestBootstrapKey } from './secret.ts';

/** The caller: a stored key, or the configured key (id 0). */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly scope: KeyScope;
  /** The first characters of the secret that the caller sent; a rotated key has two secrets. */
  readonly hint?: string | undefined;
}

export interface AuthenticatorOptions {
  /** The configured secret, which is not stored. */
  bootstrapKey?: string | undefined;
  /** Limits wrong keys per address, to save look-ups: keys are too long to guess. No limit when absent. */
  failures?: FailureLimit | undefined;
  observer?: KeyObserver | undefined;
  /** Called when the configured secret is first used from an address. */
  onBootstrapUse?: ((address: string) => void) | undefined;
}

/** The cached look-up of a secret. */
interface KnownKey {
  /** null for an unknown, expired or revoked secret. */
  readonly caller: Caller | null;
  /** The time (`Date.now()`) from which the secret is rejected. */
  readonly validUntil: number;
  /** When the look-up expires (`performance.now()`, which does not change with the time of day). */
  readonly staleAt: number;
}

/** How long (ms) a look-up is cached. Under a second, so that a revocation takes effect within a second. */
const freshFor = 900;
/** The same for an invalid secret, which never becomes valid again. */
const rejectedFor = 10_000;
const batchOptions = {
  collection: 'api_key',
  operation: 'look_up',
  maxBatch: 256,
  maxInFlight: 4,
  blockTime: 100,
  isRetryable: () => false,
};
const bootstrapCaller: Caller = { id: 0, name: 'bootstrap', scope: KeyScope.write };
const always = Number.POSITIVE_INFINITY;
const knownBootstrap: KnownKey = { caller: bootstrapCaller, validUntil: always, staleAt: always };

/** Authenticates callers by their keys. */
export class Authenticator {
  /** Last use of each key. */
  readonly uses: WriteBehind<{ keyId: number; at: Date }>;
  /** By hash; for the bootstrap key by hash and address, because each address has its own failure limit. */
  readonly #known = new LRUCache<string, KnownKey>({ max: 20_000 });
  readonly #bootstrapHash: string | undefined;
  readonly #selections: Batches<string, KnownKey | null>;

  constructor(
    database: Database,
    private readonly options: AuthenticatorOptions = {},
  ) {
    this.#bootstrapHash = options.bootstrapKey && hashSecret(options.bootstrapKey);
    this.#selections = database.batched((hashes) => selectKeys(database, hashes), batchOptions);
    this.uses = new WriteBehind(
      (uses) => database.rows(touchKeys, [uses.map(({ keyId }) => keyId), uses.map(({ at }) => at)]),
      (_earlier, later) => later,
    );
  }

  /**
   * Returns the caller of a key; null when it is unknown, mistyped, expired or revoked. The result is a promise only
   * when it is not cached: about once a second for a valid key, every ten seconds for an invalid one.
   *
   * @param address the client's address. Unknown keys from one address are limited; a key that was valid at its last
   *   look-up is not subject to that limit.
   * @throws StoreError TOO_MANY_REQUESTS; DatabaseUnavailable
   */
  lookUp(secret: string, address: string, call: CallContext = unboundedCall): Caller | null | Promise<Caller | null> {
    const hash = hashSecret(secret);
    const name = hash === this.#bootstrapHash ? `${hash} ${address}` : hash;
    const known = this.#known.get(name);
    if (known && performance.now() < known.staleAt) return callerOf(known);
    if (known?.caller) return this.#select(secret, hash, call);
    // With a bootstrap key, any text that is long enough may be a guess at it, so it counts as a wrong key.
    const mayExist = isSecret(secret) || (this.#bootstrapHash !== undefined && secret.length >= shortestBootstrapKey);
    return mayExist ? this.#askWithinLimit(secret, hash, address, call) : null;
  }

  async #askWithinLimit(secret: string, hash: string, address: string, call: CallContext): Promise<Caller | null> {
    const { failures, onBootstrapUse } = this.options;
    const seconds = await failures?.secondsToWait(address);
    if (seconds) {
      throw new StoreError('TOO_MANY_REQUESTS', 'Too many requests with a wrong API key came from this address.', {
        headers: { 'retry-after': `${seconds}` },
      });
    }
    if (hash === this.#bootstrapHash) {
      onBootstrapUse?.(address);
      this.#known.set(`${hash} ${address}`, knownBootstrap);
      return bootstrapCaller;
    }
    const caller = isSecret(secret) ? await this.#select(secret, hash, call) : this.#reject(hash);
    if (!caller) await failures?.count(address, hash);
    return caller;
  }

  async #select(secret: string, hash: string, call: CallContext): Promise<Caller | null> {
    const { observer } = this.options;
    const found = await this.#selections.add(hash, call).catch((error) => {
      observer?.lookedUp('failed');
      throw error;
    });
    observer?.lookedUp(found ? 'known' : 'unknown');
    if (!found || !callerOf(found)) return this.#reject(hash);
    const caller = { ...(found.caller as Caller), hint: hintOf(secret) };
    this.#known.set(hash, { ...found, caller });
    this.uses.add(`${caller.id}`, { keyId: caller.id, at: new Date() });
    return caller;
  }

  #reject(hash: string): null {
    this.#known.set(hash, { caller: null, validUntil: 0, staleAt: performance.now() + rejectedFor });
    return null;
  }
}

function callerOf({ caller, validUntil }: KnownKey): Caller | null {
  return Date.now() < validUntil ? caller : null;
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
 * Queries a replica first, and the primary for keys unknown there, which may just have been issued.
 *
 * @returns the key of every current or previous hash; null for an unknown hash
 */
async function selectKeys(database: Database, hashes: string[]): Promise<Array<KnownKey | null>> {
  const staleAt = performance.now() + freshFor;
  const found = new Map<string, KnownKey>();
  const learn = (rows: KeyRow[]) => {
    for (const [hash, id, name, scope, expires, replaced] of rows) {
      const validUntil = Math.min(timeOf(expires), timeOf(replaced));
      found.set(hash, { caller: { id: Number(id), name, scope }, validUntil, staleAt });
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
  return milliseconds === null ? always : Number(milliseconds);
}
