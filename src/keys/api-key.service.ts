import { LockMode } from '@mikro-orm/core';
import { coalesce } from '../database/coalesce.ts';
import type { Database } from '../database/database.ts';
import { StoreError } from '../errors.ts';
import { ApiKey, KeyScope } from './api-key.entity.ts';
import { believedFor, type Caller, type KnownKey, lookUpKeys } from './key-lookup.ts';
import { createSecret, hashSecret, hintOf, isSecret } from './secret.ts';

/** What a new key is to be. */
export interface NewKey {
  /** What it is for, to recognise it in the list. */
  name: string;
  scope?: KeyScope | undefined;
  /** From when it is refused; never when absent. */
  expiresAt?: Date | null | undefined;
}

/** A key with its secret, which is told here and never again. */
export interface IssuedKey {
  id: number;
  name: string;
  scope: KeyScope;
  key: string;
  expiresAt: Date | null;
}

export interface ApiKeyServiceOptions {
  /** A secret that is valid as long as the configuration names it; it is not stored. */
  bootstrapKey?: string | undefined;
  /** Told of every look-up that found a key: about once a second for a key in use. */
  onUse?: ((keyId: number) => void) | undefined;
}

const lookups = { maxBatch: 256, maxInFlight: 4, patience: 100 };
const bootstrapCaller: Caller = { id: 0, name: 'bootstrap', scope: KeyScope.write };
/** Beyond this many, the keys that were not looked up lately are forgotten. */
const remembered = 10_000;

/** API keys: who may call, and the life of a key. */
export class ApiKeyService {
  readonly #known = new Map<string, KnownKey>();
  readonly #bootstrapHash: string | undefined;
  readonly #database: Database;
  readonly #onUse: ((keyId: number) => void) | undefined;
  readonly #lookUp: (hash: string) => Promise<KnownKey | null>;

  constructor(database: Database, { bootstrapKey, onUse }: ApiKeyServiceOptions = {}) {
    this.#database = database;
    this.#onUse = onUse;
    this.#bootstrapHash = bootstrapKey && hashSecret(bootstrapKey);
    this.#lookUp = coalesce(
      (hashes) => lookUpKeys(database, hashes),
      lookups,
      () => false,
    );
  }

  /**
   * Whose secret this is, as far as that is known without asking the database.
   *
   * @returns null: nobody's. undefined: it takes a look-up.
   */
  recall(secret: string): Caller | null | undefined {
    const hash = hashSecret(secret);
    if (hash === this.#bootstrapHash) return bootstrapCaller;
    const known = this.#known.get(hash);
    const now = Date.now();
    // A clock that was set back must not prolong a look-up's life.
    if (known && Math.abs(now - known.lookedUpAt) < believedFor) return now < known.validUntil ? known.caller : null;
    return isSecret(secret) ? undefined : null;
  }

  /**
   * Whose secret this is. Each secret is looked up at most about once a second.
   *
   * @returns null when it is unknown, mistyped, expired or revoked.
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async authenticate(secret: string): Promise<Caller | null> {
    const recalled = this.recall(secret);
    if (recalled !== undefined) return recalled;
    const hash = hashSecret(secret);
    const found = await this.#lookUp(hash);
    if (this.#known.size >= remembered) this.#known.clear();
    if (found) this.#known.set(hash, found);
    else this.#known.delete(hash);
    if (!found || Date.now() >= found.validUntil) return null;
    this.#onUse?.(found.caller.id);
    return found.caller;
  }

  /** Makes a key. */
  async issue({ name, scope = KeyScope.write, expiresAt = null }: NewKey): Promise<IssuedKey> {
    const secret = createSecret();
    const em = this.#database.orm.em.fork();
    const created = em.create(ApiKey, { name, scope, expiresAt, hint: hintOf(secret), hash: hashSecret(secret) });
    await em.flush();
    return { id: created.id, name, scope, key: secret, expiresAt };
  }

  /** All keys, the revoked ones too, by id. */
  async list(): Promise<ApiKey[]> {
    return this.#database.orm.em.fork().find(ApiKey, {}, { orderBy: { id: 'asc' } });
  }

  /**
   * Gives a key a new secret.
   *
   * @param overlap how long, in milliseconds, the secret it had until now stays valid. One before that ends at once.
   * @throws StoreError NOT_FOUND, or BAD_USER_INPUT for a key that is revoked
   */
  async rotate(id: number, overlap: number): Promise<IssuedKey> {
    const secret = createSecret();
    const { name, scope, expiresAt } = await this.#change(id, (key) => {
      if (key.revokedAt) throw new StoreError('BAD_USER_INPUT', `The key ${id} is revoked.`);
      key.previousHash = overlap > 0 ? key.hash : null;
      key.previousExpiresAt = overlap > 0 ? new Date(Date.now() + overlap) : null;
      key.hash = hashSecret(secret);
      key.hint = hintOf(secret);
    });
    return { id, name, scope, key: secret, expiresAt: expiresAt ?? null };
  }

  /** Refuses the key, all its secrets, from now on: on every node within a second. @throws StoreError NOT_FOUND */
  async revoke(id: number): Promise<ApiKey> {
    return this.#change(id, (key) => {
      key.revokedAt ??= new Date();
    });
  }

  async #change(id: number, change: (key: ApiKey) => void): Promise<ApiKey> {
    return this.#database.orm.em.fork().transactional(async (em) => {
      // Two rotations at once are one after the other: the first one's secret is the second one's previous.
      const key = await em.findOne(ApiKey, { id }, { lockMode: LockMode.PESSIMISTIC_WRITE });
      if (!key) throw new StoreError('NOT_FOUND', `There is no key with the id ${id}.`);
      change(key);
      return key;
    });
  }
}
