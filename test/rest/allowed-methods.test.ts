import { practiceModule } from '../modules/practice/practice.module.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll({}, undefined, { more: [practiceModule] });

test.each([
  ['/v1/tags', 'GET, HEAD, OPTIONS, POST'],
  ['/v1/tags/7', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
  // It is like the address of an item.
  ['/v1/tags/batch', 'OPTIONS, POST'],
])('%s allows %s', async (path, allow) => {
  const { status, headers } = await rest(store, path, { method: 'OPTIONS' });
  expect([status, headers.allow]).toEqual([204, allow]);
  const refused = await rest(store, path, { method: 'PUT' });
  expect([refused.status, refused.headers.allow]).toEqual([405, allow]);
});
