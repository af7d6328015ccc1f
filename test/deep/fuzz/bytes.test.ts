import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { bytes, sendBytes } from './bytes.ts';
import { fuzz } from './fuzz.ts';

const store = storeForAll({ REQUEST_TIMEOUT_MS: '3000' });

fuzz(() => store, {
  name: 'connections with random bytes',
  share: 0.1,
  request: bytes,
  send: sendBytes,
  show: (some) => JSON.stringify(some.toString('latin1')),
});

test('afterwards the service answers as ever', async () => {
  const { status, json } = await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
  expect([status, json.name]).toEqual([201, 'Rex']);
  expect((await rest(store, `/v1/pets?after=${json.id - 1}`)).json).toEqual([json]);
});
