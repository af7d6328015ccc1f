import fc from 'fast-check';
import type { Model } from './model.ts';

/** "The id of the nth animal there is then, or one beside it": ids are not known before the service has given them. */
class Reference {
  constructor(
    readonly nth: number,
    readonly plus: number,
    readonly as: 'text' | 'integer',
  ) {}

  in({ pets }: Model): unknown {
    const id = BigInt(pets[this.nth % Math.max(pets.length, 1)]?.id ?? 1) + BigInt(this.plus);
    return this.as === 'text' ? `${id}` : id;
  }
}

/** Puts ids in the place of references. */
export function resolved<Value>(value: Value, model: Model): Value {
  if (value instanceof Reference) return value.in(model) as Value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolved(one, model)])) as Value;
}

const edges = [0n, 1n, 2n ** 31n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n]
  .flatMap((edge) => [edge, -edge])
  .concat(-(2n ** 63n) - 1n, 2n ** 64n, 10n ** 39n);
export const int64 = fc.oneof(
  { weight: 3, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) },
  { weight: 2, arbitrary: fc.constantFrom(...edges.filter((edge) => BigInt.asIntN(64, edge) === edge)) },
);
export const integer = fc.oneof(int64, fc.constantFrom(...edges), fc.integer());
export const oddText = fc.constantFrom(
  '',
  ' ',
  'rex',
  '007',
  '+7',
  '-0',
  '7.0',
  '1e1',
  ' 7',
  '7 ',
  '0x7',
  '٧',
  '__proto__',
);
export const oddJson = fc.constantFrom<unknown[]>(null, true, false, 1.5, -0.5, 1e21, '5');
export const reference = fc
  .record({ nth: fc.nat(30), plus: fc.constantFrom(0, 0, 0, 1, -1), as: fc.constantFrom('text', 'integer') })
  .map(({ nth, plus, as }) => new Reference(nth, plus, as as 'text'));

/** Mostly one that the store must keep to the last character; sometimes one that it must refuse. */
export const name = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)), maxLength: 6 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('', '\u0000', '\ud800', 'a\udc00b', '\ufeffRex', 'e\u0301', '\u2028', '\\', '"'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('{}', '{"a",null}', 'NULL', "'; drop table pet;--", '\u{10ffff}', 'x'.repeat(1000)),
  },
);
export const validName = name.filter((text) => text.isWellFormed() && !text.includes('\u0000'));
export const status = fc.constantFrom('available', 'pending', 'sold');
export const oddStatus = fc.constantFrom<unknown[]>(
  'Sold',
  '',
  ' sold',
  'lost',
  'toString',
  '__proto__',
  null,
  1,
  true,
);

export const mostly = <T>(usual: fc.Arbitrary<T>, ...odd: fc.Arbitrary<unknown>[]) =>
  fc.oneof(
    { weight: 6, arbitrary: usual as fc.Arbitrary<unknown> },
    ...odd.map((arbitrary) => ({ weight: 1, arbitrary })),
  );
