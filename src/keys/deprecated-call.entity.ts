import { defineEntity, p } from '@mikro-orm/core';

const deprecatedCallSchema = defineEntity({
  name: 'DeprecatedCall',
  tableName: 'deprecated_call',
  properties: {
    /** The caller's key; 0 is the one from the configuration. */
    keyId: p.integer().primary(),
    /** As the interface names it: `getPet`, `Query.pet`. */
    operation: p.text().primary(),
    /** When the operation goes away. */
    removal: p.datetime(),
    calls: p.bigint('bigint'),
    lastCallAt: p.datetime(),
  },
});

/** The table `deprecated_call`: who still calls what will go away. */
export class DeprecatedCall extends deprecatedCallSchema.class {}

deprecatedCallSchema.setClass(DeprecatedCall);
