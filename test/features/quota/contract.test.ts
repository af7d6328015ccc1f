import { operations } from '../../support/contract.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { startStore, storeForAll } from '../../support/store.ts';

const store = storeForAll({ QUOTA_PER_MINUTE: '400' });

test('the contract has the headers of the quota where they are sent', async () => {
  const reported = operations.map(({ operationId, responses }: any) => [
    operationId,
    Object.keys(responses).filter(
      (status) => 'RateLimit' in (responses[status].headers ?? {}),
    ),
  ]);
  expect(Object.fromEntries(reported)).toMatchObject({
    listPets: ['200', '304', '400', '429', '500', '503'],
    createPet: ['201', '400', '409', '422', '429', '500', '503'],
    getPet: ['200', '304', '400', '404', '429', '500', '503'],
    // Not implemented: it costs nothing.
    listOrders: [],
  });
  const headers = async (path: string, more: object = {}) =>
    (await rest(store, path, more)).headers;
  for (const given of [
    await headers('/v1/pets?limit=0'),
    await headers('/v1/pets', { method: 'POST', json: {} }),
    await headers('/v1/pets/99999'),
  ]) {
    expect(given).toMatchObject({
      ratelimit: expect.any(String),
      'ratelimit-policy': expect.any(String),
    });
  }
});

test('the contract is the same without a quota', async () => {
  const { app, close } = await startStore();
  expect(store.app.swagger()).toEqual(app.swagger());
  await close();
});
