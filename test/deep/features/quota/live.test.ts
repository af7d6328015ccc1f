// runs: embedded

import {
  type LiveApi,
  liveApis,
  openStream,
  type Stream,
  seen,
} from '../../../support/events.ts';
import { afterEach, describe, expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { type Store, startStore } from '../../../support/store.ts';

let store: Store;
const open: Stream[] = [];
afterEach(async () => {
  for (const stream of open.splice(0)) stream.close();
  await store.close();
});
const create = (name: string, key: string) =>
  rest(store, '/v1/pets', {
    method: 'POST',
    json: { name, categoryId: 5 },
    key,
  });

describe.each(liveApis)('through $api', ({ follow, end }: LiveApi) => {
  const subscribe = async (variables: { after: string }) => {
    const stream = await follow(store, variables);
    open.push(stream);
    return stream;
  };

  test('the start and each animal of a subscription cost a unit of the quota; an exhausted quota ends it with the reason', async () => {
    store = await startStore({ QUOTA_PER_MINUTE: '5' });
    const stream = await subscribe({ after: '0' });
    // Each creation has its own key, so that it uses another quota.
    for (const [at, name] of ['a', 'b', 'c', 'd'].entries()) {
      await create(name, (await store.keys.issue({ name })).key);
      await stream.until(at + 1);
    }
    await create('e', (await store.keys.issue({ name: 'last' })).key);
    await stream.ended;
    expect(seen(stream)).toEqual(['a', 'b', 'c', 'd']);
    const failure = {
      code: 'TOO_MANY_REQUESTS',
      message: 'This key has used its 5 units of this minute.',
      status: 429,
    };
    expect(stream.events.slice(4)).toEqual(end(failure));

    const again = await subscribe({ after: '0' });
    expect([again.status, again.headers['retry-after']]).toEqual([
      429,
      expect.any(String),
    ]);
  });
});

test('leaf fields of an animal that are not free cost a unit each', async () => {
  store = await startStore({ QUOTA_PER_MINUTE: '100' });
  const names = Array.from({ length: 12 }, (_, at) => `a${at}: name`).join(' ');
  const query = `subscription { petAdded(after: "0") { ${names} } }`;
  const stream = await openStream(store, { body: { query } });
  open.push(stream);
  const creating = await store.keys.issue({ name: 'creating' });
  await create('a', creating.key);
  await create('b', creating.key);
  await stream.until(2);
  const { headers } = await rest(store, '/v1/pets/0');
  expect(headers.ratelimit).toMatch(
    new RegExp(`r=${100 - 1 - 2 * (1 + 2) - 1}\\b`),
  );
});
