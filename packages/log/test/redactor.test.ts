import { expect, test } from '@jest/globals';
import { Redactor } from '../src/redactor.ts';

const redactor = new Redactor('sk_', 'the-configured-one');

test.each([
  ['plain', 'plain'],
  ['tab\there, \u001b[31mred, ß and \u009b', 'tab?here, ?[31mred, ? and ?'],
  ['issued sk_abc123, sk_x', 'issued sk_..., sk_...'],
  ['encoded sk%5Fabc and %73%6b%5fabc', 'encoded sk_... and sk_...'],
  ['twice %2573k_abc, three times %252573k_abc', 'twice sk_..., three times sk_...'],
  ['the-configured-one', '[key]'],
  ['the%2Dconfigured%2Done', '[key]'],
  // Without a secret nothing is decoded.
  ['a%20b', 'a%20b'],
  ['x'.repeat(200), 'x'.repeat(100)],
  // A secret that begins before the bound.
  [`${'x'.repeat(98)}sk_abc`, `${'x'.repeat(98)}sk`],
])('%j is logged as %j', (text, logged) => expect(redactor.redact(text, 100)).toBe(logged));

test('a path is logged without its query, up to 256 characters', () => {
  expect(redactor.redactPath('/toys/sk_abc?key=sk_abc')).toBe('/toys/sk_...');
  expect(redactor.redactPath('/'.repeat(1000))).toHaveLength(256);
});

test('a secret is detected by its prefix, and the configured one by its text', () => {
  expect(['sk_', 'a the-configured-one b', 'sk', ''].map((text) => redactor.hasSecret(text))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(new Redactor('sk_').hasSecret('the-configured-one')).toBe(false);
});
