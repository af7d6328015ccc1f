import { defineEntity, p } from '@mikro-orm/core';

const deprecatedCallSchema = defineEntity({
  name: 'DeprecatedCall',
  tableName: 'deprecated_call',
  properties: {
    /** The caller's key; 0 is the key from the configuration. */
    keyId: p.integer().primary(),
    /** The name in the API: `getPet`, `Query.pet`. */
    operation: p.text().primary(),
    /** When the operation is removed. */
    removal: p.datetime(),
    calls: p.bigint('bigint'),
    lastCallAt: p.datetime(),
  },
});

/** The table `deprecated_call`: which keys still call deprecated operations. */
export class DeprecatedCall extends deprecatedCallSchema.class {}

deprecatedCallSchema.setClass(DeprecatedCall);
