import { Type } from 'typebox';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { describe, expect, test } from '../support/jest.ts';

/** Arrays of inputs that may be empty, null or absent, of texts and objects. */

const name = textSchema({ maxLength: 5, description: 'A name.' });
const schema = Type.Object({
  tags: Type.Optional(Type.Array(name, { maxItems: 2 })),
  parts: Type.Optional(Type.Array(Type.Object({ name }), { maxItems: 2 })),
  notes: Type.Optional(
    nullable(
      Type.Array(Type.Object({ name }), { maxItems: 2, description: 'Notes.' }),
    ),
  ),
});
const strict = validator(schema);
const lenient = validator(schema, { isLenient: true });

test.each([
  [{ tags: 'x' }, 'tags must be an array, not a string.'],
  [{ tags: {} }, 'tags must be an array, not an object.'],
  [{ tags: null }, 'tags must be an array, not null.'],
  [{ parts: 5 }, 'parts must be an array, not a number.'],
  [{ parts: { name: 'x' } }, 'parts must be an array, not an object.'],
  [{ notes: false }, 'notes must be an array, or null, not a boolean.'],
])('%j is no empty array', (input, message) => {
  expect(() => strict(input)).toThrow(message);
});

test.each([strict, lenient])('null of what may be null is absent', (read) => {
  expect(read({ notes: null })).toEqual({});
  expect(read({ tags: [], parts: [], notes: [] })).toEqual({
    tags: [],
    parts: [],
    notes: [],
  });
});

test('GraphQL: null is absent, and one value is a list of one', () => {
  expect(lenient({ tags: null, parts: null })).toEqual({});
  const one = { name: 'x' };
  expect(lenient({ tags: 'x', parts: one, notes: one })).toEqual({
    tags: ['x'],
    parts: [one],
    notes: [one],
  });
});

describe('an array of another length is refused unread', () => {
  const most = { maxItems: 2, minItems: 1 };
  const read: string[] = [];
  /** Notes which of its members are read. */
  const watched = () =>
    new Proxy(
      {},
      { getOwnPropertyDescriptor: (_, at) => note(`${String(at)}`) },
    );
  const note = (name: string) => {
    read.push(name);
    return undefined;
  };
  const object = Type.Object({ name });
  const nested = Type.Object({ parts: Type.Array(object, most) });
  const schemas = {
    separate: Type.Array(object, { ...most, 'x-separate': true }),
    objects: Type.Array(object, most),
    nested: Type.Array(nested, most),
    texts: Type.Array(name, most),
  };
  test.each(
    Object.entries(schemas).flatMap(([kind, list]) =>
      [false, true].map((isLenient) => [kind, isLenient, list] as const),
    ),
  )('%s, lenient: %s', (_kind, isLenient, list) => {
    read.length = 0;
    const check = validator(Type.Object({ list }), { isLenient });
    const given = Array.from({ length: 3 }, watched);
    expect(() => check({ list: given })).toThrow(/^list must be .*1 to 2 val/);
    expect(read).toEqual([]);
  });
});

test('any JSON is read no further than it may be long', () => {
  let reads = 0;
  const values = new Proxy(new Array(300_000).fill(1), {
    get(target, at) {
      reads += 1;
      return Reflect.get(target, at);
    },
  });
  const check = validator(Type.Object({ data: Type.Unknown() }));
  expect(() => check({ data: values })).toThrow('at most 8000 characters');
  expect(reads).toBeLessThan(30_000);
});

test('a refusal names some of the unknown members', () => {
  const members = Array.from({ length: 60_000 }, (_, at) => [`a${at}`, 1]);
  const closed = Type.Object({}, { additionalProperties: false });
  const check = validator(closed);
  expect(() => check(Object.fromEntries(members))).toThrow(
    /^a0 is unknown; .*a19 is unknown; 59980 others are unknown\.$/,
  );
});
