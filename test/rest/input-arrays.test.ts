import { Type } from 'typebox';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { expect, test } from '../support/jest.ts';

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

test.each([strict, lenient])('too many are refused unread', (read) => {
  let reads = 0;
  const part = new Proxy(
    { name: 'x' },
    {
      get(target, name) {
        reads += 1;
        return Reflect.get(target, name);
      },
    },
  );
  const message = 'parts must be an array of 0 to 2 values, each an object.';
  expect(() => read({ parts: Array(1000).fill(part) })).toThrow(message);
  expect(() => read({ notes: Array(3).fill(part) })).toThrow('0 to 2 values');
  expect(reads).toBe(0);
});
