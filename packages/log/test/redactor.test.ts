import { Redactor } from '@animal-store/log/redactor';
import { expect, test } from '@jest/globals';

const redactor = new Redactor(/key_\w*/g, 'the-configured-one');

test.each([
  ['plain', 'plain'],
  ['tab\there, \u001b[31mred, ß and \u009b', 'tab?here, ?[31mred, ? and ?'],
  ['issued key_abc123, key_x', 'issued key_..., key_...'],
  ['encoded key%5Fabc and %6b%65%79%5fabc', 'encoded key_... and key_...'],
  [
    'twice %256bey_abc, three times %25256bey_abc',
    'twice key_..., three times key_...',
  ],
  ['the-configured-one', '[key]'],
  ['the%2Dconfigured%2Done', '[key]'],
  // Without a secret nothing is decoded.
  ['a%20b', 'a%20b'],
  ['x'.repeat(200), 'x'.repeat(100)],
  // A secret that begins before the bound.
  [`${'x'.repeat(98)}key_abc`, `${'x'.repeat(98)}ke`],
])('%j is logged as %j', (text, logged) =>
  expect(redactor.redact(text, 100)).toBe(logged),
);

test('a path is logged without its query, up to 256 characters', () => {
  expect(redactor.redactPath('/toys/key_abc?key=key_abc')).toBe(
    '/toys/key_...',
  );
  expect(redactor.redactPath('/toys#name=Rex')).toBe('/toys');
  expect(redactor.redactPath('/'.repeat(1000))).toHaveLength(256);
});

test('a secret is detected by its form, and the configured one by its text', () => {
  expect(
    ['key_', 'a the-configured-one b', 'key', ''].map((text) =>
      redactor.hasSecret(text),
    ),
  ).toEqual([true, true, false, false]);
  expect(new Redactor(/key_\w*/g).hasSecret('the-configured-one')).toBe(false);
});
