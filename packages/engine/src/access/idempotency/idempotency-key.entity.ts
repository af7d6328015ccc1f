import { defineEntity, p } from '@mikro-orm/core';

/**
 * The table `idempotency_key`: creations that must not be repeated. Only of
 * transactions it contains client data.
 */
export const IdempotencyKey = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_key',
  properties: {
    /**
     * The caller's key; 0 is the bootstrap key. Rotation does not change it.
     */
    keyId: p.integer().primary(),
    /** The name in the API, the same for REST and GraphQL: `createPet`. */
    operation: p.text().primary(),
    /** SHA-256 of the client's `Idempotency-Key`. */
    hash: p.blob().primary(),
    /** SHA-256 of the validated input, and the names of its members. */
    fingerprint: p.blob(),
    /**
     * The generated values of the row as PostgreSQL's texts, the id first. The
     * input contains the others. Of a transaction, its answer.
     */
    generated: p.array(),
    createdAt: p.datetime().defaultRaw('now()').index(),
  },
});
