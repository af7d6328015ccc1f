import { practiceModule } from '../../modules/practice/practice.module.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({ QUOTA_PER_MINUTE: '40' }, undefined, {
  more: [practiceModule],
});

const add = (count: number, word: string) => {
  const inputs = Array.from({ length: count }, (_, at) => ({
    name: `${word} ${at}`,
  }));
  const options = { method: 'POST', json: { inputs } };
  return rest(store, '/v1/tags/batch', options);
};

test('each of several creations costs a unit, and of two requests beyond the quota one is refused before any is stored', async () => {
  const { status, headers } = await add(3, 'first');
  expect([status, headers.ratelimit]).toEqual([
    200,
    expect.stringMatching(/;r=36;/),
  ]);
  const answers = await Promise.all([add(100, 'x'), add(100, 'y')]);
  const codes = answers.map((one) => one.status);
  expect(codes.toSorted()).toEqual([200, 429]);
});
