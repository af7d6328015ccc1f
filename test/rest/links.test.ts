import { stock } from '../support/database-access.ts';
import { beforeAll, expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { storeForAll } from '../support/store.ts';

/** The `Link` of a page is a URI (RFC 3986), whatever the client sent; and each address has one `Allow`. */

const store = storeForAll();
beforeAll(() => stock(store.database, 2));
const key = () => `Authorization: Bearer ${store.key}\r\n`;

test.each([
  ['x={}|^`\\', 'x=%7B%7D%7C%5E%60%5C'],
  ['x=[1]', 'x=%5B1%5D'],
  ['x=%zz%7b', 'x=%25zz%7b'],
  ["x=a:b/c?d@e!$'()*+,;f", "x=a:b/c?d@e!$'()*+,;f"],
])('?%s comes back as ?%s', async (sent, linked) => {
  const [page] = await exchange(store, requestText(`GET /v1/pets?${sent}&limit=1`, key()));
  expect(page?.headers.link).toBe(`<http://store.example/v1/pets?${linked}&limit=1&after=1>; rel="next"`);
});

test('a mutation by GET has the `Allow` of every other 405 at that address', async () => {
  const query = encodeURIComponent('mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }');
  const refused = await exchange(store, requestText(`GET /graphql?query=${query}`, key()));
  const other = await exchange(store, requestText('PUT /graphql', key()));
  for (const [answer] of [refused, other]) {
    expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, OPTIONS, POST' } });
  }
});
