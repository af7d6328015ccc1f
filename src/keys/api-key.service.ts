import { coalesce } from '../database/coalesce.ts';
import type { Database } from '../database/database.ts';
import { StoreError } from '../errors.ts';
import { ApiKey, KeyScope } from './api-key.entity.ts';
import { createSecret, hashSecret, hintOf, isSecret } from './secret.ts';

/** Who is calling: a stored key, or the one from the configuration (id 0). */
export interface Caller {
  readonly id: number;
  readonly name: string;
  readonly scope: KeyScope;
}

/** A key that was just made. `key` is the secret; it is told here and never again. */
export interface IssuedKey {
  id: number;
  name: string;
  scope: KeyScope;
  key: string;
  expiresAt: Date | null;
}

interface KnownKey {
  caller: Caller;
  /** The clock (ms) at which the look-up that found it began. */
  lookedUpAt: number;
  /** The clock (ms) from which it is refused. */
  validUntil: number;
}

/** How long (ms) a look-up is believed. Under a second, so that a revocation is in force everywhere within one. */
const believedFor = 900;
const lookups = { maxBatch: 256, maxInFlight: 4, patience: 100 };

/** API keys: who may call, and the life of a key. */
export class ApiKeyService {
  readonly #known = new Map<string, KnownKey>();
  readonly #bootstrapHash: string | undefined;
  readonly #database: Database;
  readonly #lookUp: (hash: string) => Promise<KnownKey | null>;

  /** @param bootstrapKey a secret that is valid as long as the configuration names it; it is not stored. */
  constructor(database: Database, bootstrapKey?: string) {
    this.#database = database;
    this.#bootstrapHash = bootstrapKey && hashSecret(bootstrapKey);
    this.#lookUp = coalesce(
      (hashes) => lookUpKeys(database, hashes),
      lookups,
      () => false,
    );
  }

  /**
   * Whose secret this is. Each secret is looked up at most about once a second.
   *
   * @returns null when it is unknown, mistyped, expired or revoked.
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async authenticate(secret: string): Promise<Caller | null> {
    const hash = hashSecret(secret);
    if (hash === this.#bootstrapHash) return bootstrapCaller;
    const known = this.#known.get(hash);
    const now = Date.now();
    if (known && Math.abs(now - known.lookedUpAt) < believedFor) return now < known.validUntil ? known.caller : null;
    if (!isSecret(secret)) return null;
    return this.#learn(hash);
  }

  async #learn(hash: string): Promise<Caller | null> {
    const found = await this.#lookUp(hash);
    if (found) this.#known.set(hash, found);
    else this.#known.delete(hash);
    return found && Date.now() < found.validUntil ? found.caller : null;
  }

  /** @param name what the key is for, to recognise it in the list. */
  async issue(name: string, scope: KeyScope = KeyScope.write, expiresAt: Date | null = null): Promise<IssuedKey> {
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

  /** Refuses the key from now on, on every node within a second. @throws StoreError NOT_FOUND */
  async revoke(id: number): Promise<ApiKey> {
    const em = this.#database.orm.em.fork();
    const key = await em.findOne(ApiKey, { id });
    if (!key) throw new StoreError('NOT_FOUND', `There is no key with id ${id}.`);
    key.revokedAt ??= new Date();
    await em.flush();
    return key;
  }
}

const bootstrapCaller: Caller = { id: 0, name: 'bootstrap', scope: KeyScope.write };

const selectKeys = {
  name: 'select_keys',
  text: `
    select wanted.hash, id, name, scope,
      extract(epoch from expires_at) * 1000,
      case when previous_hash = wanted.hash then extract(epoch from previous_expires_at) * 1000 end
    from unnest($1::text[]) as wanted (hash)
    join api_key on wanted.hash in (api_key.hash, api_key.previous_hash)
    where revoked_at is null`,
};

type KeyRow = [
  hash: string,
  id: number,
  name: string,
  scope: KeyScope,
  expires: string | null,
  replaced: string | null,
];

async function lookUpKeys(database: Database, hashes: string[]): Promise<Array<KnownKey | null>> {
  const lookedUpAt = Date.now();
  const found = new Map<string, KnownKey>();
  for (const [hash, id, name, scope, expires, replaced] of await database.rows<KeyRow>(selectKeys, [
    [...new Set(hashes)],
  ])) {
    const validUntil = Math.min(
      Number(expires ?? Number.POSITIVE_INFINITY),
      Number(replaced ?? Number.POSITIVE_INFINITY),
    );
    found.set(hash, { caller: { id, name, scope }, lookedUpAt, validUntil });
  }
  return hashes.map((hash) => found.get(hash) ?? null);
}
