import { defineEntity, p } from '@mikro-orm/core';

const idempotencyKeySchema = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_key',
  properties: {
    /** The caller's key; 0 is the key from the configuration. A rotated one stays the same. */
    keyId: p.integer().primary(),
    /** The name in the API, the same for REST and GraphQL: `createPet`. */
    operation: p.text().primary(),
    /** SHA-256 of what the client calls its request by. */
    hash: p.blob().primary(),
    /** SHA-256 of the checked input. */
    fingerprint: p.blob(),
    /** What the database has generated for the row, as its texts, the id first. The rest of the row is the input. */
    generated: p.array(),
    createdAt: p.datetime().defaultRaw('now()').index(),
  },
});

/** The table `idempotency_key`: creations that are not to happen twice. It holds nothing that a client has written. */
export class IdempotencyKey extends idempotencyKeySchema.class {}

idempotencyKeySchema.setClass(IdempotencyKey);
