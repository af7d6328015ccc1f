import { newPetSchema, petSchema } from '../../src/modules/pets/pet.schemas.ts';
import { firstCalls } from '../../src/process/welcome.ts';
import { expect, test } from '../support/jest.ts';
import { newToySchema, toySchema } from './toys/toy.schemas.ts';
import { toysModule } from './toys/toys.module.ts';

/** The commands that a first start prints (src/process/welcome.ts). */

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

test('an example of the input is one of a creation; an apostrophe is quoted', () => {
  const input = { ...newPetSchema, examples: [{ name: "Rex' toy" }] };
  const pets = { name: 'pets', input, item: petSchema, service };
  const [, creation] = firstCalls(access, pets as never);
  expect(creation).toBe(
    `${json} -d '{"name":"Rex'\\'' toy"}' http://127.0.0.1:4000/v1/pets`,
  );
});
