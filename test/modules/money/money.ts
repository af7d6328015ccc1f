import { p } from '@mikro-orm/core';
import { Type } from 'typebox';
import { type Kind, ofKind } from '#engine/validation/rules.js';

export const moneyPattern = '^(-?)(\\d{1,16})(?:\\.(\\d{1,2}))?$';
const amount = new RegExp(moneyPattern);

/** Cents of a text such as `12.5`. */
function centsOf(text: string) {
  const [, sign = '', whole = '', part = ''] = amount.exec(text) ?? [];
  return BigInt(`${sign}${whole}${part.padEnd(2, '0')}`);
}

function textOf(cents: bigint) {
  const digits = `${cents < 0n ? -cents : cents}`.padStart(3, '0');
  const sign = cents < 0n ? '-' : '';
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Money: cents in a `bigint`, shown as a text such as `12.50`. */
export const money = {
  rule: () => ({
    keywords: ['pattern'],
    describe: () => 'an amount such as 12.50',
    read(value) {
      const isAmount = typeof value === 'string' && amount.test(value);
      return isAmount ? textOf(centsOf(value)) : undefined;
    },
  }),
  column: () => p.bigint('string'),
  codec: {
    fromText: (cents) => textOf(BigInt(cents)),
    write: (text: string) => `${centsOf(text)}`,
  },
  graphql: { name: 'Money', description: 'An exact amount, such as "12.50".' },
} satisfies Kind;

export function moneySchema(options: { description: string }) {
  return Type.Unsafe<string>({
    type: 'string',
    pattern: moneyPattern,
    ...options,
    [ofKind]: money,
  });
}
