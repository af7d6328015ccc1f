import fc from 'fast-check';
import { toJson } from '../../support/json.ts';

const numbers = fc.constantFrom(
  ...[
    '0',
    '-0',
    '1',
    '-1',
    '1.0',
    '1.5',
    '1e3',
    '1e400',
    '-1e400',
    '1e-400',
    '9007199254740993',
    '9223372036854775807',
  ],
  ...[
    '-9223372036854775808',
    '9223372036854775808',
    '1e99999',
    '0.1e1',
    '123456789012345678901234567890',
    'NaN',
    '01',
    '+1',
  ],
);
const fragments = fc.constantFrom(
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '\\',
    '\\u0000',
    '\\ud800',
    '\u0000',
    '\ufeff',
    'null',
    'true',
    '{}',
    '[]',
    '""',
  ],
  ...[
    '"__proto__":{"a":1},',
    '"constructor":{"prototype":{}},',
    '"id":1,',
    '"status":"sold",',
    '/*',
    '//',
    ' ',
    '\n',
    '\u2028',
  ],
);

const cut = fc.record({ at: fc.nat(400), length: fc.nat(20), put: fc.oneof(numbers, fragments, fc.string()) });

/** The text with pieces cut out and others put in. */
export function mutated(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(text, fc.array(cut, { minLength: 1, maxLength: 3 })).map(([whole, cuts]) =>
    cuts.reduce((now, { at, length, put }) => {
      const place = at % (now.length + 1);
      return now.slice(0, place) + put + now.slice(place + length);
    }, whole),
  );
}

/** Any JSON value; `hard` numbers are written as they are. */
export const anyJson = fc.oneof(
  { weight: 3, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 2, arbitrary: numbers },
  { weight: 1, arbitrary: fc.constantFrom(1, 100, 5000, 40_000).map((depth) => '['.repeat(depth)) },
  { weight: 1, arbitrary: fc.constantFrom(1, 100, 5000).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`) },
);

const anything = fc.jsonValue({ maxDepth: 1 });
const members = fc.record(
  {
    name: fc.oneof({ weight: 6, arbitrary: fc.string({ unit: 'binary' }) }, anything),
    categoryId: fc.oneof({ weight: 6, arbitrary: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }) }, anything),
    status: fc.oneof({ weight: 6, arbitrary: fc.constantFrom('available', 'pending', 'sold') }, anything),
    constructor: fc.constant(1),
  },
  { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
);

/** NewPet as JSON, its members valid or not. */
export const newPetJson = members.map(toJson);
