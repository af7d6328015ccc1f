// runs: embedded, postgres

import { existsSync, readFileSync } from 'node:fs';
import { apis } from '../support/apis.ts';
import { whileReadsFail } from '../support/database-access.ts';
import { liveApis, streamsForEach } from '../support/events.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Examples for test/README.md. */

const store = storeForAll();
const closedAfterwards = streamsForEach(store);

test.each(apis)('a limit has bounds, through $name', async (api) => {
  expect(await api.list(store, { limit: 101 })).toEqual({
    code: 'BAD_USER_INPUT',
    status: 400,
    message: 'limit must be an integer between 1 and 100.',
  });
});

test('while PostgreSQL shuts down, a list is 503', () =>
  whileReadsFail(store.database, '57P03', async () => {
    const { status, headers } = await rest(store, '/v1/pets');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
  }));

test.each(liveApis)(
  'an animal that is added appears, through $api',
  async ({ follow, petEvent }) => {
    const stream = await closedAfterwards(follow(store, {}));
    const rex = { name: 'Rex', categoryId: 5 };
    const request = { method: 'POST', json: rex };
    const { json: pet } = await rest(store, '/v1/pets', request);
    expect(await stream.until(1)).toEqual([petEvent(pet)]);
  },
);

const examples = [
  ...readFileSync('test/README.md', 'utf8').matchAll(
    /^### .*`(\S+)`\n\n```ts\n([\s\S]*?)```/gm,
  ),
].map(([, file = '', text = '']) => ({ file, text }));

test('there are six', () => expect(examples).toHaveLength(6));

// A copy without parts lacks their tests.
const here = examples.filter(({ file }) => existsSync(file));

test.each(here)('test/README.md shows a test of $file', (example) => {
  expect(readFileSync(example.file, 'utf8')).toContain(example.text);
});
