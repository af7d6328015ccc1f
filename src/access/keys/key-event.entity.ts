import { defineEntity, p } from '@mikro-orm/core';

/** What has happened to a key. */
export const KeyChange = { issued: 'issued', rotated: 'rotated', revoked: 'revoked' } as const;
export type KeyChange = (typeof KeyChange)[keyof typeof KeyChange];

const keyEventSchema = defineEntity({
  name: 'KeyEvent',
  tableName: 'key_event',
  properties: {
    id: p.integer().primary().autoincrement(),
    at: p.datetime().defaultRaw('now()'),
    keyId: p.integer(),
    /** The first characters of the secret that the key has since then. */
    hint: p.text(),
    change: p.enum(Object.values(KeyChange)),
    user: p.text().fieldName('os_user'),
    sudoUser: p.text().nullable(),
    host: p.text(),
    command: p.text(),
  },
});

/** The table `key_event`: who has issued, rotated and revoked keys. Rows are added, never changed. */
export class KeyEvent extends keyEventSchema.class {}

keyEventSchema.setClass(KeyEvent);
