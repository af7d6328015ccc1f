import { hostname, userInfo } from 'node:os';
import { type EntityManager, LockMode } from '@mikro-orm/core';
import type { Database } from '../../database/database.ts';
import { badInput, StoreError } from '../../errors.ts';
import { ApiKey, KeyEvent } from './api-key.entity.ts';
import { createSecret, hashSecret, hintOf, subjectPrefix } from './secret.ts';

/** The properties of a new key. */
export interface NewKey {
  /** The purpose of the key, to recognise it in the list. */
  name: string;
  /** Scopes, separated by spaces; `write` when absent. */
  scope?: string;
  /** When the key expires; never when absent. */
  expiresAt?: Date | null;
}

/** A key with its secret, which cannot be retrieved again. */
export interface IssuedKey extends Pick<ApiKey, 'id' | 'name' | 'scope'> {
  key: string;
  expiresAt: Date | null;
}

/** Identifies the user who changes keys, according to the operating system. */
type Actor = Pick<KeyEvent, 'user' | 'sudoUser' | 'host' | 'command'>;

export function actorOf(command: string, sudoUser?: string): Actor {
  return {
    user: userName(),
    sudoUser: sudoUser || null,
    host: hostname(),
    command,
  };
}

function userName() {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.()}`;
  }
}

/**
 * Issues, rotates and revokes keys, and records each change with its actor in
 * the same transaction.
 */
export class ApiKeyService {
  constructor(
    private readonly database: Database,
    private readonly actor: Actor,
  ) {}

  async issue({
    name,
    scope = 'write',
    expiresAt = null,
  }: NewKey): Promise<IssuedKey> {
    const secret = createSecret();
    const id = await this.#fork().transactional(async (em) => {
      const key = em.create(ApiKey, {
        name,
        scope,
        expiresAt,
        hint: hintOf(secret),
        hash: hashSecret(secret),
      });
      await em.flush();
      this.#record(em, key, 'issued');
      return key.id;
    });
    return { id, name, scope, key: secret, expiresAt };
  }

  /**
   * Issues the first key of a new store.
   *
   * @returns undefined when keys exist already
   */
  async issueFirst() {
    const keys = await this.list();
    return keys.length > 0 ? undefined : this.issue({ name: 'first key' });
  }

  /** All keys, including revoked ones, by id. */
  async list() {
    const areKeys = { $not: { hint: { $like: `${subjectPrefix}%` } } };
    return this.#fork().find(ApiKey, areKeys, { orderBy: { id: 'asc' } });
  }

  /** All changes of keys, the oldest first. */
  async history() {
    return this.#fork().find(KeyEvent, {}, { orderBy: { id: 'asc' } });
  }

  #fork() {
    return this.database.orm.em.fork();
  }

  /**
   * Gives a key a new secret.
   *
   * @param overlap how long (ms) the current secret stays valid; an older one
   *   becomes invalid immediately
   * @throws StoreError NOT_FOUND, or BAD_USER_INPUT for a key that is revoked
   *   or has expired
   */
  async rotate(
    id: number,
    overlap: number,
  ): Promise<IssuedKey & { previousExpiresAt: Date | null }> {
    const secret = createSecret();
    const rotated = await this.#change(id, (key) => {
      assertRotatable(key);
      key.previousHash = null;
      key.previousExpiresAt = null;
      if (overlap > 0) {
        key.previousHash = key.hash;
        key.previousExpiresAt = new Date(Date.now() + overlap);
      }
      key.hash = hashSecret(secret);
      key.hint = hintOf(secret);
      return 'rotated';
    });
    const { name, scope, expiresAt = null, previousExpiresAt = null } = rotated;
    return { id, name, scope, key: secret, expiresAt, previousExpiresAt };
  }

  /**
   * Revokes the key with all its secrets, on every node within a second. A read
   * node adds its lag.
   *
   * @throws StoreError NOT_FOUND
   */
  async revoke(id: number) {
    return this.#change(id, (key) => {
      if (key.revokedAt) return undefined;
      key.revokedAt = new Date();
      return 'revoked';
    });
  }

  /** @param change returns the change to record, if any */
  async #change(
    id: number,
    change: (key: ApiKey) => KeyEvent['change'] | undefined,
  ) {
    return this.#fork().transactional(async (em) => {
      // Serialises concurrent rotations, so that each keeps the secret of the
      // one before.
      const key = await em.findOne(
        ApiKey,
        { id },
        { lockMode: LockMode.PESSIMISTIC_WRITE },
      );
      if (!key)
        throw new StoreError('NOT_FOUND', `There is no key with the id ${id}.`);
      const made = change(key);
      if (made) this.#record(em, key, made);
      return key;
    });
  }

  #record(
    em: EntityManager,
    { id: keyId, hint }: ApiKey,
    change: KeyEvent['change'],
  ) {
    em.create(KeyEvent, { keyId, hint, change, ...this.actor });
  }
}

/** @throws StoreError BAD_USER_INPUT */
function assertRotatable({ id, name, hint, revokedAt, expiresAt }: ApiKey) {
  if (hint.startsWith(subjectPrefix))
    throw badInput(`${id} is a subject of ${name}, which has no secret.`);
  if (revokedAt) throw badInput(`The key ${id} is revoked.`);
  if (expiresAt && expiresAt.getTime() <= Date.now())
    throw badInput(`The key ${id} has expired; issue a new one.`);
}
