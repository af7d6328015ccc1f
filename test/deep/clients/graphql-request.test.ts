import { ClientError, GraphQLClient } from 'graphql-request';
import { CreatePetDocument, PetDocument, PetsDocument } from '../../support/generated/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();
beforeEach(() => store.empty());

function connected(key = store.key): GraphQLClient {
  return new GraphQLClient(`${store.origin}/graphql`, { headers: { authorization: `Bearer ${key}` } });
}

test('graphql-request creates, lists and fetches an animal', async () => {
  const client = connected();
  const input = { name: 'Rex', categoryId: '9223372036854775807', status: 'sold' } as const;
  const { createPet: rex } = await client.request(CreatePetDocument, { input });
  expect(rex).toEqual({ id: expect.stringMatching(/^\d+$/), ...input });
  expect(await client.request(PetsDocument, { status: 'sold' })).toEqual({ pets: [rex] });
  expect(await client.request(PetDocument, { id: rex.id })).toEqual({ pet: rex });
  expect(await client.request(PetDocument, { id: '0' })).toEqual({ pet: null });
});

test('graphql-request walks the pages by the last id seen', async () => {
  const client = connected();
  const all: unknown[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    all.push((await client.request(CreatePetDocument, { input: { name, categoryId: '1' } })).createPet);
  }
  const walked: Array<{ id: string }> = [];
  for (;;) {
    const { pets } = await client.request(PetsDocument, { limit: 2, after: walked.at(-1)?.id });
    walked.push(...pets);
    if (pets.length < 2) break;
  }
  expect(walked).toEqual(all);
});

test('graphql-request gets every failure as an error with its code', async () => {
  const refused = connected().request(CreatePetDocument, { input: { name: 'Rex', categoryId: 'five' } });
  await expect(refused).rejects.toBeInstanceOf(ClientError);
  await expect(refused).rejects.toMatchObject({
    response: { errors: [{ extensions: { code: 'BAD_USER_INPUT', status: 400 } }] },
  });
  await expect(connected('wrong').request(PetsDocument, {})).rejects.toMatchObject({
    response: { status: 401, errors: [{ extensions: { code: 'UNAUTHENTICATED', status: 401 } }] },
  });
});
