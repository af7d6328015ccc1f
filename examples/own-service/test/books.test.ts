import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startForTest } from '@animal-store/engine/testing';
import { service } from '../src/service.ts';

const { origin, key, close } = await startForTest(service);
after(close);

const ask = async (path: string, body: string) => {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  };
  const url = `${origin}${path}`;
  return (await fetch(url, { method: 'POST', headers, body })).text();
};

test('both APIs have a book, exact to the last digit', async () => {
  const created = await ask(
    '/v1/books',
    '{"title":"Emma","number":9007199254740993}',
  );
  const book = '{"id":1,"title":"Emma","number":9007199254740993,"version":1}';
  assert.equal(created, book);
  const listed = await ask('/graphql', '{"query":"{ books { number } }"}');
  assert.equal(listed, '{"data":{"books":[{"number":"9007199254740993"}]}}');
});
