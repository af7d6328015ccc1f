import { stock } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll(
  { GRAPHQL_FEDERATION: 'true', QUOTA_PER_MINUTE: '200' },
  () => stock(store.database, 5),
);

const query =
  'query ($of: [_Any!]!) { _entities(representations: $of) { __typename ... on Pet { id name } } }';
const pet = (id: unknown) => ({ __typename: 'Pet', id });

test('the quota is charged once for each entity that was found', async () => {
  const of = Array.from({ length: 100 }, (_, at) => pet(`${at + 1}`));
  const found = await graphqlText(store, { query, variables: { of } });
  expect(found.data._entities.filter(Boolean)).toHaveLength(5);
  expect(found.headers.ratelimit).toMatch(/r=194\b/);

  const { key } = await store.keys.issue({ name: 'asks twice' });
  const twice = [...Array(80).fill(pet('1')), pet('2'), pet(null)];
  const variables = { of: twice };
  const { headers } = await graphqlText(
    { ...store, key },
    { query, variables },
  );
  expect(headers.ratelimit).toMatch(/r=197\b/);
});
