import { stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll({}, async () => {
  await stock(store.database, 1);
});

// The type of such a variable allows null, and its default makes it fit: that it does not is found when the operation
// is executed.
describe('a variable with a default that is null where null cannot be is refused:', () => {
  const needsNoNull = (argument: string, type: string) =>
    `Argument "${argument}" of non-null type "${type}!" must not be null.`;

  test.each([
    ['@include', 'query ($a: Boolean = true) { pets @include(if: $a) { id } }', needsNoNull('if', 'Boolean')],
    ['@skip', 'query ($a: Boolean = true) { pets @skip(if: $a) { id } }', needsNoNull('if', 'Boolean')],
    [
      '@include on a field',
      'query ($a: Boolean = true) { pets { id @include(if: $a) } }',
      needsNoNull('if', 'Boolean'),
    ],
    [
      '@include on a fragment',
      'query ($a: Boolean = true) { pets { ... @include(if: $a) { id } } }',
      needsNoNull('if', 'Boolean'),
    ],
    ['an argument', 'query ($a: ID = 1) { pet(id: $a) { id } }', needsNoNull('id', 'ID')],
    [
      'an argument of introspection',
      'query ($a: String = "Pet") { __type(name: $a) { name } }',
      needsNoNull('name', 'String'),
    ],
    [
      'a field of an input',
      'mutation ($a: ID = 1) { createPet(input: { name: "Rex", categoryId: $a }) { id } }',
      'Argument "input" has invalid value {name: "Rex", categoryId: $a}.',
    ],
    [
      'a field of an input with a default of its own',
      'mutation ($a: PetStatus = sold) { createPet(input: { name: "Rex", categoryId: 1, status: $a }) { id } }',
      'Argument "input" has invalid value {name: "Rex", categoryId: 1, status: $a}.',
    ],
  ])('%s', async (_where, query, message) => {
    // The second time an operation is compiled, and no answer may depend on that.
    for (let time = 0; time < 3; time += 1) {
      const { status, errors } = await graphqlText(store, { query, variables: { a: null } });
      expect(status).toBe(200);
      expect(errors?.map(({ message, extensions }) => [message, extensions])).toEqual([
        [message, { code: 'BAD_USER_INPUT', status: 400 }],
      ]);
    }
    expect((await rest(store, '/v1/pets')).json).toHaveLength(1);
  });
});
