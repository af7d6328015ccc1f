import { practiceModule } from '../../modules/practice/practice.module.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({ QUOTA_PER_MINUTE: '1000' }, undefined, {
  more: [practiceModule],
});

const remaining = ({ headers }: { headers: object }) =>
  Number(/r=(\d+)/.exec(JSON.stringify(headers))?.[1]);

async function added(name: string) {
  const options = { method: 'POST', json: { name } };
  const answer = await rest(store, '/v1/tags', options);
  return { id: answer.json.id, left: remaining(answer) };
}

test('a removal costs an operation and its item, on both APIs; one of no item costs the operation', async () => {
  const first = await added('one');
  const options = { method: 'DELETE' };
  const removed = await rest(store, `/v1/tags/${first.id}`, options);
  expect(first.left - remaining(removed)).toBe(2);
  const again = await rest(store, `/v1/tags/${first.id}`, options);
  expect(remaining(removed) - remaining(again)).toBe(1);
  const second = await added('two');
  const query = `mutation { removeTag(id: ${second.id}) }`;
  const mutation = await graphqlText(store, { query });
  expect(mutation.errors).toBeUndefined();
  expect(second.left - remaining(mutation)).toBe(2);
});
