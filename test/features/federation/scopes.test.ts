import { checkupsModule } from '../../modules/checkups/checkups.module.ts';
import { graphqlThrice } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const federated = { GRAPHQL_FEDERATION: 'true' };
const store = storeForAll(federated, addOne, { more: [checkupsModule] });

async function addOne() {
  const send = (path: string, json: object) =>
    rest(store, path, { method: 'POST', json });
  await send('/v1/pets', { name: 'Rex', categoryId: 1 });
  await send('/v1/checkups', { petId: 1, reason: 'x-ray' });
}

const keyWith = async (scope: string) =>
  (await store.keys.issue({ name: 'one test', scope })).key;
const messageFor = (scope: string) =>
  `This needs an API key with the scope "${scope}".`;
const reference = '_entities(representations: [{ __typename: "Pet", id: 1 }])';

test('a reference with fields of another module needs its scope, too', async () => {
  const query = `{ ${reference} { ... on Pet { id checkups { id } } } }`;
  const key = await keyWith('pets:read');
  const { data, errors } = await graphqlThrice(store, { query }, key);
  expect(data).toBeUndefined();
  expect(errors).toMatchObject([{ message: messageFor('checkups:read') }]);
  const both = await keyWith('pets:read checkups:read');
  const answer = await graphqlThrice(store, { query }, both);
  expect(answer.errors).toBeUndefined();
});

test('a reference needs the scope of its type, even without a field of it', async () => {
  const key = await keyWith('checkups:read');
  const query = `{ ${reference} { __typename } checkups { id } }`;
  const { data, errors } = await graphqlThrice(store, { query }, key);
  expect([data._entities, data.checkups.length]).toEqual([
    [null],
    expect.any(Number),
  ]);
  expect(errors).toMatchObject([{ message: messageFor('pets:read') }]);
});
