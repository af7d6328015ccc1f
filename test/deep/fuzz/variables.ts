import fc from 'fast-check';

/** Anything, what is known to be hard above all. */
export const value = fc.oneof(
  fc.constantFrom<unknown[]>(
    1,
    20,
    101,
    '1',
    'sold',
    'lost',
    null,
    true,
    9007199254740993n,
    2n ** 63n,
    '\ud800',
    'a\u0000',
  ),
  fc.jsonValue({ maxDepth: 2 }),
);
const mostly = (usual: fc.Arbitrary<unknown>) => fc.oneof({ weight: 15, arbitrary: usual }, value);
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const id = mostly(fc.oneof(int64, int64.map(String)));
const status = mostly(fc.constantFrom('available', 'pending', 'sold'));
const input = mostly(
  fc.record(
    { name: mostly(fc.string({ unit: 'binary' })), categoryId: id, status },
    { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
  ),
);
const int = mostly(fc.integer({ min: 1, max: 100 }));
const text = mostly(fc.oneof(fc.string(), int64.map(String)));
const [yes, no] = [mostly(fc.boolean()), mostly(fc.constant(undefined))];
/** Values named after their types, as `DocumentWriter` declares its variables. */
export const variables = fc.record(
  {
    ...{ vInt: int, vID: id, vIDx: id, vString: text, vStringx: text, vBooleanx: yes },
    ...{ vPetStatus: status, vPetStatusx: status, vNewPetx: input, more: no },
  },
  { noNullPrototype: true },
);
