import { LRUCache } from 'lru-cache';
import type { Call, Caller } from '../../call.ts';
import type { Batches, Database, Statement } from '../../database/database.ts';
import { StoreError, Unavailable } from '../../errors.ts';
import type { KeyObserver } from '../../runtime/observers.ts';
import type { FailureLimit } from '../limits/failure-limit.ts';
import { WriteBehind } from '../write-behind.ts';
import type { Identities } from './identities.ts';
import {
  hashSecret,
  hintOf,
  isSecret,
  shortestBootstrapKey,
} from './secret.ts';

interface AuthenticatorOptions {
  /** The configured secret, which is not stored. */
  bootstrapKey?: string;
  /**
   * Limits wrong keys per address, to save look-ups: keys are too long to
   * guess. No limit when absent.
   */
  failures?: FailureLimit;
  /** Accepts tokens of an identity provider. */
  identities?: Identities;
  observers?: readonly KeyObserver[];
  /** Called when the configured secret is first used from an address. */
  onBootstrapUse?: (address: string) => void;
}

/** The cached look-up of a secret. */
interface LookUp {
  /** null for an unknown, expired or revoked secret. */
  readonly caller: Caller | null;
  /** Why a token was refused. */
  readonly reason?: string;
  /**
   * When the secret expires (`performance.now()`, which does not change with
   * the time of day).
   */
  readonly validUntil: number;
  /** When the look-up expires. */
  readonly staleAt: number;
}

/**
 * How long (ms) a look-up is cached. Under a second, so that a revocation takes
 * effect within a second.
 */
const freshFor = 900;
/**
 * The same for an invalid secret, which cannot become valid, unless the backup
 * of an earlier time is restored.
 */
const rejectedFor = 10_000;
const batchOptions = {
  collection: 'api_key',
  operation: 'look_up',
  maxBatch: 256,
  maxInFlight: 4,
  blockTime: 100,
  isRetryable: () => false,
};
const additions = { collection: 'api_key', operation: 'add_subject' };
const bootstrapCaller: Caller = {
  id: 0,
  name: 'bootstrap',
  scopes: ['write', 'all'],
};
const always = Number.POSITIVE_INFINITY;
const knownBootstrap: LookUp = {
  caller: bootstrapCaller,
  validUntil: always,
  staleAt: always,
};

/** Authenticates callers by their keys. */
export class Authenticator {
  /** Last use of each key. */
  readonly uses: WriteBehind<{ keyId: number; at: Date }>;
  /**
   * By hash; for the bootstrap key by address, because each has its own failure
   * limit.
   */
  readonly #known = new LRUCache<string, LookUp>({ max: 20_000 });
  readonly #bootstrapHash: string | undefined;
  readonly #queries: Batches<string, LookUp | null>;

  constructor(
    private readonly database: Database,
    private readonly options: AuthenticatorOptions,
  ) {
    this.#bootstrapHash =
      options.bootstrapKey && hashSecret(options.bootstrapKey);
    this.#queries = database.batched(
      (hashes) => queryKeys(database, hashes),
      batchOptions,
    );
    this.uses = new WriteBehind(
      (uses) =>
        database.rows(touchKeys, [
          uses.map(({ keyId }) => keyId),
          uses.map(({ at }) => at),
        ]),
      (_earlier, later) => later,
    );
  }

  /**
   * Returns the caller of a key or token; null when it is unknown, mistyped,
   * expired or revoked. The result is a promise only when it is not cached:
   * about once a second for a valid key, every ten seconds for an invalid one.
   *
   * @param address the client's address. Unknown keys and forged tokens from
   *   one address are limited. A key that was valid at its last look-up, and a
   *   token that the provider has signed, are not subject to that limit.
   * @throws StoreError TOO_MANY_REQUESTS, for a token also those of
   *   `Identities`; Unavailable
   */
  lookUp(secret: string, address: string, call: Call, hash: string) {
    const name = hash === this.#bootstrapHash ? address : hash;
    const known = this.#known.get(name);
    const now = performance.now();
    const isFresh = known && now < known.staleAt;
    if (known?.caller) {
      if (now >= known.validUntil) return null;
      return isFresh ? known.caller : this.#lookUpNow(secret, hash, call);
    }
    if (isFresh) return null;
    // With a bootstrap key, any text that is long enough may be a guess at it,
    // so it counts as a wrong key.
    const mayBeGuess =
      this.#bootstrapHash !== undefined &&
      secret.length >= shortestBootstrapKey;
    const mayBeValid = mayBeGuess || isSecret(secret) || this.isToken(secret);
    if (!mayBeValid) return null;
    return this.#askWithinLimit(secret, hash, address, call);
  }

  /** True for the form of a token; false for any text when tokens are off. */
  isToken(text: string) {
    return this.options.identities?.matches(text) ?? false;
  }

  /** Why `lookUp` returned null, where that is known. */
  refusalOf(secret: string) {
    const known = this.#known.get(hashSecret(secret));
    return known?.caller ? 'expired' : known?.reason;
  }

  async #askWithinLimit(
    secret: string,
    hash: string,
    address: string,
    call: Call,
  ) {
    const { failures, onBootstrapUse } = this.options;
    // A token that its provider has signed is not limited. `#lookUpNow` gets the
    // same result again, which `Identities` caches.
    const verified = await this.#verify(secret, hash);
    const isSubject = typeof verified === 'object';
    const seconds = isSubject ? 0 : await failures?.secondsToWait(address);
    if (seconds) {
      throw new StoreError(
        'TOO_MANY_REQUESTS',
        'Too many requests with a wrong API key came from this address.',
        { headers: { 'retry-after': `${seconds}` } },
      );
    }
    if (hash === this.#bootstrapHash) {
      onBootstrapUse?.(address);
      this.#known.set(address, knownBootstrap);
      return bootstrapCaller;
    }
    const caller = await this.#lookUpNow(secret, hash, call);
    if (!caller && !isSubject) await failures?.count(address, hash);
    return caller;
  }

  /** Who has the token, if it is one. */
  async #verify(secret: string, hash: string) {
    if (!this.isToken(secret)) return undefined;
    return this.options.identities?.verify(secret, hash);
  }

  async #lookUpNow(secret: string, hash: string, call: Call) {
    const subject = await this.#verify(secret, hash);
    if (typeof subject === 'string') return this.#reject(hash, subject);
    if (!subject && !isSecret(secret)) return this.#reject(hash);
    let found = await this.#query(subject?.hash ?? hash, call);
    if (!found && subject) {
      const { issuer, caller, hash } = subject;
      await this.database.inTurn(call, additions, () =>
        this.database.rows(addSubject, [issuer, caller.hint, hash]),
      );
      found = await this.#query(subject.hash, call);
    }
    const validUntil = Math.min(
      found?.validUntil ?? 0,
      subject?.validUntil ?? always,
    );
    const isOver = performance.now() >= validUntil;
    if (!found?.caller || isOver) return this.#reject(hash);
    const caller = {
      ...found.caller,
      hint: hintOf(secret),
      ...subject?.caller,
    };
    this.#known.set(hash, { ...found, caller, validUntil });
    this.uses.add(`${caller.id}`, { keyId: caller.id, at: new Date() });
    return caller;
  }

  async #query(hash: string, call: Call) {
    const found = await this.#queries.add(hash, call).catch((error) => {
      this.#tell('failed');
      throw error;
    });
    this.#tell(found ? 'known' : 'unknown');
    return found;
  }

  #tell(result: Parameters<KeyObserver['lookedUp']>[0]) {
    for (const one of this.options.observers ?? []) one.lookedUp(result);
  }

  #reject(hash: string, reason?: string) {
    this.#known.set(hash, {
      caller: null,
      reason,
      validUntil: 0,
      staleAt: performance.now() + rejectedFor,
    });
    return null;
  }
}

const touchKeys: Statement = {
  name: 'touch_keys',
  text: `
    update api_key set last_used_at = greatest(last_used_at, used.at)
    from unnest($1::int[], $2::timestamptz[]) as used (id, at) where api_key.id = used.id`,
};

/**
 * The row of a subject has an id for all that a caller has, and no scope of its
 * own: tokens bring one.
 */
const addSubject: Statement = {
  name: 'add_subject',
  isWrite: true,
  text: `
    insert into api_key (name, scope, hint, hash) select $1, 'read', $2, $3
    where not exists (select from api_key where hash = $3) on conflict (hash) do nothing`,
};

/**
 * SQL for the milliseconds until a time. PostgreSQL subtracts no time from
 * infinity before version 17.
 */
const left = (column: string) =>
  `1000 * (extract(epoch from ${column}) - extract(epoch from now()))`;

// A join by `hash or previous_hash` is slow until the table is analysed, which
// the embedded store never does.
const selectKeysByHash: Statement = {
  name: 'select_keys',
  text: `
    select hash, id, name, scope, ${left('expires_at')}, null
    from api_key where hash = any($1::text[]) and revoked_at is null
    union all
    select previous_hash, id, name, scope,
      ${left('expires_at')}, ${left('previous_expires_at')}
    from api_key where previous_hash = any($1::text[]) and revoked_at is null`,
};

type KeyRow = [
  hash: string,
  id: string,
  name: string,
  scope: string,
  expires: string | null,
  replaced: string | null,
];

/**
 * Asks the primary, because a replica may not have received a revocation; only
 * while the primary cannot be reached, a replica.
 *
 * @returns the key of every current or previous hash; null for an unknown hash
 */
async function queryKeys(database: Database, hashes: string[]) {
  const asked = performance.now();
  const found = new Map<string, LookUp>();
  const wanted = [...new Set(hashes)];
  const asking = database.rows<KeyRow>(selectKeysByHash, [wanted]);
  const rows = await asking.catch((error) => {
    const isAway = database.hasReadNodes && error instanceof Unavailable;
    if (!isAway) throw error;
    return database.read<KeyRow>(selectKeysByHash, [wanted]);
  });
  for (const [hash, id, name, scope, expires, replaced] of rows) {
    const validFor = Math.min(timeOf(expires), timeOf(replaced));
    found.set(hash, {
      caller: { id: Number(id), name, scopes: scope.split(' ') },
      // By the database's clock, which all nodes share.
      validUntil: asked + validFor,
      staleAt: asked + freshFor,
    });
  }
  return hashes.map((hash) => found.get(hash) ?? null);
}

function timeOf(milliseconds: string | null) {
  return milliseconds === null ? always : Number(milliseconds);
}
