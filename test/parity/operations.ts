import fc from 'fast-check';
import type { Face } from '../support/faces.ts';
import type { KeyKind, Model } from './model.ts';

/** One call through one face; `burst` is many valid creations at once, through both. */
export type Operation =
  | { call: 'list'; face: Face['name']; key: KeyKind; query: { limit?: unknown; status?: unknown; after?: unknown } }
  | { call: 'create'; face: Face['name']; key: KeyKind; newPet: unknown }
  | { call: 'find'; face: Face['name']; key: KeyKind; id: unknown }
  | { call: 'burst'; creations: Array<{ face: Face['name']; newPet: unknown }> };

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

const edges = [
  0n,
  1n,
  -1n,
  2n ** 31n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 2n,
  2n ** 63n - 1n,
  2n ** 63n,
]
  .flatMap((edge) => [edge, -edge])
  .concat(-(2n ** 63n) - 1n, 2n ** 64n, 10n ** 39n);
const int64 = fc.oneof(
  { weight: 3, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) },
  { weight: 2, arbitrary: fc.constantFrom(...edges.filter((edge) => BigInt.asIntN(64, edge) === edge)) },
);
const integer = fc.oneof(int64, fc.constantFrom(...edges), fc.integer());
const oddText = fc.constantFrom(
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
  'null',
  '__proto__',
);
const oddJson = fc.constantFrom<unknown[]>(null, true, false, 1.5, -0.5, 1e21, '5');
const reference = fc
  .record({ nth: fc.nat(30), plus: fc.constantFrom(0, 0, 0, 1, -1), as: fc.constantFrom('text', 'integer') })
  .map(({ nth, plus, as }) => new Reference(nth, plus, as as 'text'));

/** Mostly one that the store must keep to the last character; sometimes one that it must refuse. */
const name = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)), maxLength: 6 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '',
      '\u0000',
      '\ud800',
      'a\udc00b',
      '\ufeffRex',
      '\u202eRex',
      'e\u0301',
      '\u2028',
      '\\',
      '"',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('{}', '{"a",null}', 'NULL', "'; drop table pet;--", '\u{10ffff}', 'x'.repeat(9999)),
  },
);
const validName = name.filter((text) => text.isWellFormed() && !text.includes('\u0000'));
const status = fc.constantFrom('available', 'pending', 'sold');
const oddStatus = fc.constantFrom<unknown[]>(
  'Sold',
  'SOLD',
  '',
  ' sold',
  'lost',
  'toString',
  '__proto__',
  null,
  1,
  true,
);

const mostly = <T>(usual: fc.Arbitrary<T>, ...odd: fc.Arbitrary<unknown>[]) =>
  fc.oneof(
    { weight: 6, arbitrary: usual as fc.Arbitrary<unknown> },
    ...odd.map((arbitrary) => ({ weight: 1, arbitrary })),
  );

const face = fc.constantFrom<Face['name'][]>('REST', 'GraphQL');
const key = fc.oneof(
  { weight: 20, arbitrary: fc.constant<KeyKind>('write') },
  { weight: 1, arbitrary: fc.constantFrom<KeyKind[]>('read', 'none', 'unknown', 'revoked') },
);
const id = mostly(reference, integer, oddText, oddJson);
const limit = mostly(
  fc.integer({ min: 1, max: 6 }),
  fc.constantFrom(0, 1, 20, 99, 100, 101),
  integer,
  oddText,
  oddJson,
);
const query = fc.record({ limit, status: mostly(status, oddStatus), after: id }, { requiredKeys: [] });
const validNewPet = fc.record({ name: validName, categoryId: int64, status }, { requiredKeys: ['name', 'categoryId'] });
const wildNewPet = fc.record(
  {
    name: mostly(name, oddJson, fc.constant(5)),
    categoryId: mostly(int64, integer, oddJson, oddText),
    status: mostly(status, oddStatus),
    id: fc.constant(7),
    colour: fc.constant('red'),
  },
  { requiredKeys: [] },
);
const newPet = fc.oneof(
  { weight: 6, arbitrary: validNewPet as fc.Arbitrary<unknown> },
  { weight: 3, arbitrary: wildNewPet },
  { weight: 1, arbitrary: fc.constantFrom<unknown[]>(null, [], 'Rex', 5, true, {}) },
);

const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ call: fc.constant('create' as const), face, key, newPet }) },
  { weight: 4, arbitrary: fc.record({ call: fc.constant('list' as const), face, key, query }) },
  { weight: 3, arbitrary: fc.record({ call: fc.constant('find' as const), face, key, id }) },
  {
    weight: 1,
    arbitrary: fc.record({
      call: fc.constant('burst' as const),
      creations: fc.array(fc.record({ face, newPet: validNewPet as fc.Arbitrary<unknown> }), {
        minLength: 1,
        maxLength: 24,
      }),
    }),
  },
);

/** A short history of a store. */
export const operations: fc.Arbitrary<Operation[]> = fc.array(operation, { minLength: 1, maxLength: 10 });
