import { resource } from '#engine/api/resources/resource.js';
import { firstCalls } from '#engine/process/welcome.js';
import type { Int64 } from '#engine/validation/int64.js';
import { int64Schema, textSchema } from '#engine/validation/schemas.js';
import { newPetSchema, petSchema } from '../../src/pets/pet.schemas.ts';
import { expect, test } from '../support/jest.ts';
import { visit } from './practice/visit.ts';
import { newToySchema, toySchema } from './toys/toy.schemas.ts';
import { toysModule } from './toys/toys.module.ts';

/** The commands that a first start prints (process/welcome.ts). */

const access = { address: 'http://127.0.0.1:4000', key: 'KEY' };
const service = {} as never;
const curl = "curl -H 'Authorization: Bearer KEY'";
const json = `${curl} -H 'Content-Type: application/json' \\\n   `;

test('the first calls are of the first collection and the first example', () => {
  const toys = { name: 'toys', input: newToySchema, item: toySchema, service };
  expect(firstCalls(access, toys, toysModule.examples?.[0])).toEqual([
    `${curl} http://127.0.0.1:4000/v1/toys`,
    `${json} -d '{"query":"query Toys { toys(limit: 5) { id name } }"}' http://127.0.0.1:4000/graphql`,
  ]);
  expect(firstCalls(access)).toEqual([]);
});

test('the example of a resource is that of its contract, and of a creation', () => {
  const { input, item } = visit.schemas;
  const example = {
    petId: 1,
    ownerId: 1,
    at: '2030-12-05T09:30:00Z',
    reason: 'It limps.',
  };
  expect(input).toMatchObject({ examples: [example] });
  expect(item).toMatchObject({
    examples: [
      {
        id: 1,
        ...example,
        at: '2030-12-05T09:30:00.000Z',
        note: null,
        state: 'planned',
        version: 1,
        weekday: 4,
      },
    ],
  });
  const visits = { name: 'visits', input, item, service };
  const [, creation] = firstCalls(access, visits);
  expect(creation).toBe(
    `${json} -d '${JSON.stringify(example)}' http://127.0.0.1:4000/v1/visits`,
  );
});

test('an example that its input refuses is named at the start', () => {
  const declare = () =>
    resource({
      name: 'Wrong',
      description: 'Its example is wrong.',
      path: '/wrongs',
      operations: ['list'],
      members: { name: textSchema({ description: 'Its name.' }) },
      example: { name: 5 },
    });
  expect(declare).toThrow(
    'The example of Wrong is wrong: name must be a string, not a number.',
  );
});

test('an example may have a bigint that JSON shows exactly', () => {
  const declare = (isbn: Int64) =>
    resource({
      name: 'Volume',
      description: 'It has a number.',
      path: '/volumes',
      operations: ['list'],
      members: { isbn: int64Schema({ description: 'Its number.' }) },
      example: { isbn },
    });
  expect(declare(9780521458085n).schemas).toMatchObject({
    input: { examples: [{ isbn: 9780521458085 }] },
    item: { examples: [{ id: 1, isbn: 9780521458085, version: 1 }] },
  });
  expect(() => declare(9007199254740993n)).toThrow(
    '9007199254740993 is beyond 2^53, and readers would round it.',
  );
});

test('an example of the input is one of a creation; an apostrophe is quoted', () => {
  const input = { ...newPetSchema, examples: [{ name: "Rex' toy" }] };
  const pets = { name: 'pets', input, item: petSchema, service };
  const [, creation] = firstCalls(access, pets as never);
  expect(creation).toBe(
    `${json} -d '{"name":"Rex'\\'' toy"}' http://127.0.0.1:4000/v1/pets`,
  );
});
