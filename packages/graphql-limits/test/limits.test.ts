import {
  operationLimits,
  unconditionalSubscriptions,
} from '@animal-store/graphql-limits/limits';
import { expect, test } from '@jest/globals';
import { parse, specifiedRules, validate } from 'graphql';
import { schema } from './schema.ts';

/** Which documents are refused before they run. */

const limits = {
  maxFields: 20,
  maxDepth: 4,
  maxAliases: 2,
};
const codes = (text: string) => {
  const rules = [
    unconditionalSubscriptions,
    ...specifiedRules,
    operationLimits(limits),
  ];
  return validate(schema, parse(text), rules).map(
    ({ extensions, message }) => extensions.code ?? message,
  );
};

test.each([
  ['{ pet { toys { owner { id } } } }', []],
  ['{ pet { toys { owner { toys { id } } } } }', ['QUERY_TOO_DEEP']],
  ['{ a: pet { b: id c: id } }', ['TOO_MANY_ALIASES']],
  // Each 64 characters of an alias count as one.
  [`{ pet { ${'a'.repeat(128)}: id } }`, []],
  [`{ pet { ${'a'.repeat(129)}: id } }`, ['TOO_MANY_ALIASES']],
  [
    `{ pets { ...A } pet { ...A } } fragment A on Pet { ${'a'.repeat(65)}: id }`,
    ['TOO_MANY_ALIASES'],
  ],
  [
    `{ pet { ...A ...A } } fragment A on Pet { ...B ...B } fragment B on Pet { ...C ...C } fragment C on Pet { id id id }`,
    ['TOO_MANY_TOKENS'],
  ],
  [
    'subscription ($no: Boolean!) { added @skip(if: $no) { id } }',
    [
      'The field of a subscription is neither skipped nor included on a condition.',
      'Variable "$no" is never used.',
    ],
  ],
])('%s', (text, expected) => expect(codes(text)).toEqual(expected));
