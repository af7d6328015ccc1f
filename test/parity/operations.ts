import fc from 'fast-check';
import type { Api } from '../support/apis.ts';
import type { KeyKind, Model } from './model.ts';

/**
 * One call through one API; `burst` is many valid creations in parallel,
 * through both.
 */
export type Operation =
  | {
      call: 'list';
      api: Api['name'];
      key: KeyKind;
      query: { limit?: unknown; status?: unknown; after?: unknown };
    }
  | { call: 'create'; api: Api['name']; key: KeyKind; newPet: unknown }
  | { call: 'find'; api: Api['name']; key: KeyKind; id: unknown }
  | { call: 'burst'; creations: Array<{ api: Api['name']; newPet: unknown }> };

/**
 * The id of the nth animal at that time, or an id beside it: ids are unknown
 * until the service has assigned them.
 */
class Reference {
  constructor(
    readonly nth: number,
    readonly plus: number,
    readonly as: 'text' | 'integer',
  ) {}

  in({ pets }: Model): unknown {
    const id =
      BigInt(pets[this.nth % Math.max(pets.length, 1)]?.id ?? 1) +
      BigInt(this.plus);
    return this.as === 'text' ? `${id}` : id;
  }
}

/** Replaces references with ids. */
export function resolved(value: unknown, model: Model): unknown {
  if (value instanceof Reference) return value.in(model);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, resolved(one, model)]),
  );
}

const any = (...values: unknown[]): fc.Arbitrary<unknown> =>
  fc.constantFrom(...values);
const weighted = (
  ...parts: Array<[weight: number, arbitrary: fc.Arbitrary<unknown>]>
) => fc.oneof(...parts.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const mostly = (
  usual: fc.Arbitrary<unknown>,
  ...odd: fc.Arbitrary<unknown>[]
) =>
  weighted(
    [6, usual],
    ...odd.map((arbitrary): [number, fc.Arbitrary<unknown>] => [1, arbitrary]),
  );

const edges = [
  0n,
  1n,
  2n ** 31n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
]
  .flatMap((edge) => [edge, -edge])
  .concat(-(2n ** 63n) - 1n, 2n ** 64n, 10n ** 39n);
const int64 = weighted(
  [3, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  [2, any(...edges.filter((edge) => BigInt.asIntN(64, edge) === edge))],
);
const integer = fc.oneof(int64, any(...edges), fc.integer());
const oddText = any(
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
const oddJson = any(null, true, false, 1.5, -0.5, 1e21, '5');
const reference = fc
  .record({
    nth: fc.nat(30),
    plus: fc.constantFrom(0, 0, 0, 1, -1),
    as: fc.constantFrom('text', 'integer'),
  })
  .map(({ nth, plus, as }) => new Reference(nth, plus, as as 'text'));

/**
 * Mostly a name that the store must keep exactly; sometimes one that it must
 * refuse.
 */
const name = weighted(
  [4, fc.string({ unit: 'grapheme', maxLength: 12 })],
  [4, fc.string({ unit: 'binary', maxLength: 12 })],
  [
    1,
    fc.string({
      unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
      maxLength: 6,
    }),
  ],
  [
    2,
    any(
      '',
      '\u0000',
      '\ud800',
      'a\udc00b',
      '\ufeffRex',
      'e\u0301',
      '\u2028',
      '\\',
      '"',
    ),
  ],
  [
    1,
    any(
      '{}',
      '{"a",null}',
      'NULL',
      "'; drop table pet;--",
      '\u{10ffff}',
      'x'.repeat(1000),
    ),
  ],
);
const validName = name.filter(
  (text) => `${text}`.isWellFormed() && !`${text}`.includes('\u0000'),
);
const status = any('available', 'pending', 'sold');
const oddStatus = any(
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

const api = fc.constantFrom<Api['name'][]>('REST', 'GraphQL');
const key = weighted(
  [20, any('write')],
  [1, any('read', 'none', 'unknown', 'revoked')],
) as fc.Arbitrary<KeyKind>;
const id = mostly(reference, integer, oddText, oddJson);
const limit = mostly(
  fc.integer({ min: 1, max: 6 }),
  any(0, 1, 20, 99, 100, 101),
  integer,
  oddText,
  oddJson,
);
const query = fc.record(
  { limit, status: mostly(status, oddStatus), after: id },
  { requiredKeys: [] },
);
const validNewPet: fc.Arbitrary<unknown> = fc.record(
  { name: validName, categoryId: int64, status },
  { requiredKeys: ['name', 'categoryId'] },
);
const wildNewPet = fc.record(
  {
    name: mostly(name, oddJson, any(5)),
    categoryId: mostly(int64, integer, oddJson, oddText),
    status: mostly(status, oddStatus),
    id: any(7),
    colour: any('red'),
  },
  { requiredKeys: [] },
);
const newPet = weighted(
  [6, validNewPet],
  [3, wildNewPet],
  [1, any(null, [], 'Rex', 5, true, {})],
);
const creations = fc.array(fc.record({ api, newPet: validNewPet }), {
  minLength: 1,
  maxLength: 24,
});

const operation = weighted(
  [6, fc.record({ call: any('create'), api, key, newPet })],
  [4, fc.record({ call: any('list'), api, key, query })],
  [3, fc.record({ call: any('find'), api, key, id })],
  [1, fc.record({ call: any('burst'), creations })],
) as fc.Arbitrary<Operation>;

/** A short history of a store. */
export const operations = fc.array(operation, { minLength: 1, maxLength: 10 });
