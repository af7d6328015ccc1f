import { type EntityManager, LockMode } from '@mikro-orm/core';
import { LRUCache } from 'lru-cache';
import { type Deadline, noDeadline } from '../../deadline.ts';
import { StoreError } from '../../errors.ts';
import type { LookUpResult } from '../../runtime/telemetry/observers.ts';
import type { Database } from '../../storage/database/database.ts';
import type { Batches } from '../../storage/records/batches.ts';
import { type Actor, actorOf } from './actor.ts';
import { ApiKey, KeyScope } from './api-key.entity.ts';
import { KeyChange, KeyEvent } from './key-event.entity.ts';
import { type Caller, isBelieved, type KnownKey, lookUpKeys } from './key-lookup.ts';
import { createSecret, hashSecret, hintOf, type PresentedKey } from './secret.ts';

/** The properties of a new key. */
export interface NewKey {
  /** The purpose of the key, to recognise it in the list. */
  name: string;
  scope?: KeyScope | undefined;
  /** When the key expires; never when absent. */
  expiresAt?: Date | null | undefined;
}

/** A key with its secret, which is returned here and never again. */
export interface IssuedKey {
  id: number;
  name: string;
  scope: KeyScope;
  key: string;
  expiresAt: Date | null;
}

/** A key with a new secret, and how long the previous one stays valid. */
export interface RotatedKey extends IssuedKey {
  previousExpiresAt: Date | null;
}

export interface ApiKeyServiceOptions {
  /** A secret that is valid as long as the configuration contains it; it is not stored. */
  bootstrapKey?: string | undefined;
  /** Called after every look-up that found a key: about once a second for a key in use. */
  onUse?: ((keyId: number) => void) | undefined;
  /** Called after every look-up. */
  onLookUp?: ((result: LookUpResult) => void) | undefined;
  /** Called when the secret from the configuration is used from an address for the first time. */
  onBootstrapUse?: ((address: string) => void) | undefined;
  /** Who issues, rotates and revokes with this service. */
  actor?: Actor;
}

const lookups = {
  collection: 'api_key',
  operation: 'look_up',
  maxBatch: 256,
  maxInFlight: 4,
  patience: 100,
  isRetryable: () => false,
};
const bootstrapCaller: Caller = { id: 0, name: 'bootstrap', scope: KeyScope.write };

/** API keys: authentication, and the life of a key. */
export class ApiKeyService {
  /** Secrets that were valid at their last look-up, however long ago. */
  readonly #good = new LRUCache<string, KnownKey>({ max: 10_000 });
  /** Secrets without a key. Keys are never restored, so these stay invalid; a short time is enough to save look-ups. */
  readonly #refused = new LRUCache<string, true>({ max: 10_000, ttl: 10_000 });
  /** The client addresses that have used the bootstrap key. */
  readonly #bootstrapAddresses = new LRUCache<string, true>({ max: 1000 });
  readonly #bootstrapHash: string | undefined;
  readonly #database: Database;
  readonly #onUse: ((keyId: number) => void) | undefined;
  readonly #onLookUp: ApiKeyServiceOptions['onLookUp'];
  readonly #actor: Actor;
  readonly #onBootstrapUse: ((address: string) => void) | undefined;
  readonly #lookUps: Batches<string, KnownKey | null>;

  constructor(
    database: Database,
    { bootstrapKey, onUse, onLookUp, onBootstrapUse, actor = actorOf('code') }: ApiKeyServiceOptions = {},
  ) {
    this.#database = database;
    this.#onUse = onUse;
    this.#onLookUp = onLookUp;
    this.#onBootstrapUse = onBootstrapUse;
    this.#actor = actor;
    this.#bootstrapHash = bootstrapKey && hashSecret(bootstrapKey);
    this.#lookUps = database.batched((hashes) => lookUpKeys(database, hashes), lookups);
  }

  /**
   * The caller of this key, as far as it is known without a look-up.
   *
   * @returns null when there is none; undefined when only `authenticate` can tell.
   */
  recall(key: PresentedKey, address: string): Caller | null | undefined {
    const good = this.#good.get(key.hash);
    if (good && isBelieved(good)) return Date.now() < good.validUntil ? good.caller : null;
    if (key.hash === this.#bootstrapHash && this.#bootstrapAddresses.has(address)) return bootstrapCaller;
    if (this.#refused.has(key.hash)) return null;
    return key.mayBeIssued || (this.#bootstrapHash !== undefined && key.mayBeBootstrap) ? undefined : null;
  }

  /** True for a key that was valid at its last look-up: the next one is not a guess. */
  wasGood({ hash }: PresentedKey): boolean {
    return this.#good.has(hash);
  }

  /**
   * The caller of this key. Each key is looked up at most about once a second, an invalid one every ten seconds.
   *
   * @param address of the client: the bootstrap key, which may be guessable, is cached with it.
   * @returns null when it is unknown, mistyped, expired or revoked.
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async authenticate(key: PresentedKey, address: string, deadline: Deadline = noDeadline): Promise<Caller | null> {
    const recalled = this.recall(key, address);
    if (recalled !== undefined) return recalled;
    const { hash, mayBeIssued } = key;
    if (hash === this.#bootstrapHash) {
      this.#onBootstrapUse?.(address);
      this.#bootstrapAddresses.set(address, true);
      return bootstrapCaller;
    }
    const found = mayBeIssued ? await this.#lookUp(hash, deadline) : null;
    if (!found || Date.now() >= found.validUntil) {
      this.#good.delete(hash);
      this.#refused.set(hash, true);
      return null;
    }
    const caller = { ...found.caller, hint: key.hint };
    this.#good.set(hash, { ...found, caller });
    this.#onUse?.(caller.id);
    return caller;
  }

  async #lookUp(hash: string, deadline: Deadline): Promise<KnownKey | null> {
    try {
      const found = await this.#lookUps.add(hash, deadline);
      this.#onLookUp?.(found ? 'known' : 'unknown');
      return found;
    } catch (error) {
      this.#onLookUp?.('failed');
      throw error;
    }
  }

  async issue({ name, scope = KeyScope.write, expiresAt = null }: NewKey): Promise<IssuedKey> {
    const secret = createSecret();
    const id = await this.#database.orm.em.fork().transactional(async (em) => {
      const key = em.create(ApiKey, { name, scope, expiresAt, hint: hintOf(secret), hash: hashSecret(secret) });
      await em.flush();
      this.#note(em, key, KeyChange.issued);
      return key.id;
    });
    return { id, name, scope, key: secret, expiresAt };
  }

  /** All keys, including revoked ones, by id. */
  async list(): Promise<ApiKey[]> {
    return this.#database.orm.em.fork().find(ApiKey, {}, { orderBy: { id: 'asc' } });
  }

  /** Every issue, rotation and revocation, the oldest first. */
  async history(): Promise<KeyEvent[]> {
    return this.#database.orm.em.fork().find(KeyEvent, {}, { orderBy: { id: 'asc' } });
  }

  /**
   * Gives a key a new secret.
   *
   * @param overlap how long, in milliseconds, the current secret stays valid. The previous one becomes invalid at once.
   * @throws StoreError NOT_FOUND, or BAD_USER_INPUT for a key that is revoked or has expired
   */
  async rotate(id: number, overlap: number): Promise<RotatedKey> {
    const secret = createSecret();
    const { name, scope, expiresAt, previousExpiresAt } = await this.#change(id, (key) => {
      if (key.revokedAt) throw new StoreError('BAD_USER_INPUT', `The key ${id} is revoked.`);
      if (key.expiresAt && key.expiresAt.getTime() <= Date.now()) {
        throw new StoreError('BAD_USER_INPUT', `The key ${id} has expired; issue a new one.`);
      }
      key.previousHash = overlap > 0 ? key.hash : null;
      key.previousExpiresAt = overlap > 0 ? new Date(Date.now() + overlap) : null;
      key.hash = hashSecret(secret);
      key.hint = hintOf(secret);
      return KeyChange.rotated;
    });
    return { id, name, scope, key: secret, expiresAt: expiresAt ?? null, previousExpiresAt: previousExpiresAt ?? null };
  }

  /** Revokes the key with all its secrets: on every node within a second. @throws StoreError NOT_FOUND */
  async revoke(id: number): Promise<ApiKey> {
    return this.#change(id, (key) => {
      if (key.revokedAt) return undefined;
      key.revokedAt = new Date();
      return KeyChange.revoked;
    });
  }

  /** @param change returns what it has done, which is recorded in the same transaction */
  async #change(id: number, change: (key: ApiKey) => KeyChange | undefined): Promise<ApiKey> {
    return this.#database.orm.em.fork().transactional(async (em) => {
      // Concurrent rotations run one after the other: the first one's secret is the second one's previous.
      const key = await em.findOne(ApiKey, { id }, { lockMode: LockMode.PESSIMISTIC_WRITE });
      if (!key) throw new StoreError('NOT_FOUND', `There is no key with the id ${id}.`);
      const done = change(key);
      if (done) this.#note(em, key, done);
      return key;
    });
  }

  #note(em: EntityManager, { id: keyId, hint }: ApiKey, change: KeyChange): void {
    em.create(KeyEvent, { keyId, hint, change, ...this.#actor });
  }
}
