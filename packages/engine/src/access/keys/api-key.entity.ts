import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * The table `api_key`: keys, and subjects of an identity provider, whose hint
 * begins with `sub_`.
 */
export const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.integer().primary().autoincrement(),
    name: p.text(),
    /** Scopes, separated by spaces (RFC 6749, section 3.3). */
    scope: p.text(),
    /** The first characters of the secret, to recognise it. */
    hint: p.text(),
    /**
     * SHA-256 of the secret, in hexadecimal; of a subject, of its issuer and
     * name. They themselves are not stored.
     */
    hash: p.text().unique(),
    /**
     * After a rotation: the hash of the previous secret, valid until
     * `previousExpiresAt`.
     */
    previousHash: p.text().unique().nullable(),
    previousExpiresAt: p.datetime().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    expiresAt: p.datetime().nullable(),
    lastUsedAt: p.datetime().nullable(),
    revokedAt: p.datetime().nullable(),
  },
});

export type ApiKey = InferEntity<typeof ApiKey>;

/**
 * The table `key_event`: who issued, rotated and revoked keys. Rows are added,
 * never changed.
 */
export const KeyEvent = defineEntity({
  name: 'KeyEvent',
  tableName: 'key_event',
  properties: {
    id: p.integer().primary().autoincrement(),
    at: p.datetime().defaultRaw('now()'),
    keyId: p.integer(),
    /** The first characters of the secret after the change. */
    hint: p.text(),
    change: p.enum(['issued', 'rotated', 'revoked']),
    /**
     * The user name; the user id when it has no name, for example in a
     * container.
     */
    user: p.text().fieldName('os_user'),
    /** The user who ran sudo. Not trustworthy: `user` can set SUDO_USER. */
    sudoUser: p.text().nullable(),
    host: p.text(),
    /** The command, like `keys issue`; `start` for the service. */
    command: p.text(),
  },
});

export type KeyEvent = InferEntity<typeof KeyEvent>;
