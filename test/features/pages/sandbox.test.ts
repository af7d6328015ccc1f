import { toysModule } from '../../modules/toys/toys.module.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** Apollo Sandbox, the page at /graphql for a browser without a key. */

const store = storeForAll({}, undefined, { more: [toysModule] });

const page = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const visit = (path: string, headers = {}, method = 'GET') =>
  send(store.origin, { method, path, headers: { accept: page, ...headers } });

const addRex =
  'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

test('a browser gets the explorer without a key, and nothing is executed', async () => {
  for (const path of [
    '/graphql',
    `/graphql?${new URLSearchParams({ query: addRex })}`,
  ]) {
    const { status, headers, text } = await visit(path, {
      'apollo-require-preflight': '1',
    });
    expect([status, headers['content-type']]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(text).toMatch(/^\s*<!DOCTYPE html>/);
    expect(text).not.toContain('"data"');
    expect(await visit(path, {}, 'HEAD')).toMatchObject({
      status: 200,
      text: '',
      headers: { etag: headers.etag },
    });
  }
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});

test('the explorer offers the example of the toys beside those of the pets', async () => {
  const { text } = await send(store.origin, {
    path: '/graphql',
    headers: { accept: 'text/html' },
  });
  expect(text).toMatch(
    /# List animals\\nquery Pets \{.+?status.+?# List toys\\nquery Toys \{/,
  );
});

test('the explorer page repeats nothing from its address', async () => {
  for (const payload of [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
  ]) {
    const path = `/graphql?query=${encodeURIComponent(payload)}&x=${encodeURIComponent(payload)}`;
    const { text } = await send(store.origin, {
      path,
      headers: { accept: 'text/html' },
    });
    expect(text).not.toContain(payload);
  }
});
