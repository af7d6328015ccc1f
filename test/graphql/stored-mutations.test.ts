// runs: embedded, postgres

import { StoreError, Unavailable } from '#engine/errors.js';
import { practiceModule } from '../modules/practice/practice.module.ts';
import { withRows } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** What a client learns of a creation when its answer cannot be read. */

const store = storeForAll({}, undefined, { more: [practiceModule] });

let count = 0;
/** Creates an owner, while reads of visits fail. */
async function whileVisitsFail(failure: Error, headers = {}) {
  count += 1;
  const input = `{ name: "Ada", email: "${count}@example.org" }`;
  const query = `mutation { createOwner(input: ${input}) { id visits { id } } }`;
  const answer = await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (/"visit"/.test(statement.text)) throw failure;
      return rows(statement, values) as never;
    },
    () => graphqlText(store, { query }, store.key, headers),
  );
  const path = ['createOwner', 'visits'];
  expect(answer).toMatchObject({ data: null, errors: [{ path }] });
  return answer;
}

const tooMany = new StoreError('TOO_MANY_REQUESTS', 'Later.', {
  headers: { 'retry-after': '7' },
});

test.each([
  ['is late', Unavailable.late()],
  ['exceeds a quota', tooMany],
])(
  'a mutation is not sent again because what it then reads %s',
  async (_, failure) => {
    const { status, headers } = await whileVisitsFail(failure);
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty('retry-after');
  },
);

test('with its key it is sent again', async () => {
  const key = { 'idempotency-key': 'once' };
  const { headers } = await whileVisitsFail(Unavailable.late(), key);
  expect(headers['retry-after']).toBe('1');
});
