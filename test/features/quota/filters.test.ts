import { diariesModule } from '../../modules/diaries/diaries.module.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** What a filter by several values costs: each is a page of its own. */

const store = storeForAll({ QUOTA_PER_MINUTE: '1000' }, undefined, {
  more: [diariesModule],
});

const leftIn = (headers: Record<string, unknown>) =>
  Number(/r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);

/** Asks twice in one minute. */
async function costOf(ask: () => Promise<{ headers: object }>) {
  for (;;) {
    const [first, second] = [await ask(), await ask()];
    const cost = leftIn({ ...first.headers }) - leftIn({ ...second.headers });
    if (cost >= 0) return cost;
  }
}

test.each([
  [['calm'], 1],
  [['calm', 'calm'], 1],
  [['calm', 'glad'], 2],
  [['calm', 'glad', 'sad', 'odd'], 4],
])('a list by %j costs %i', async (moods, units) => {
  const query = moods.map((mood) => `mood_in=${mood}`).join('&');
  expect(await costOf(() => rest(store, `/v1/diaries?${query}`))).toBe(units);
  const list = `{ diaries(mood_in: ${JSON.stringify(moods)}) { id } }`;
  expect(await costOf(() => graphqlText(store, { query: list }))).toBe(units);
});
