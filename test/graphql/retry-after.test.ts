import { createSecret } from '../../src/access/keys/secret.ts';
import { sql } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Who is told to wait is told how long: by the header, and in the error, since clients of GraphQL show no headers. */

const store = storeForAll();

/** A database that refuses creations as it does when it has no connection left, or whatever else passes. No trigger: Citus has none. */
async function whileRefused(work: () => Promise<void>): Promise<void> {
  const refuse = `create function refuse() returns bool language plpgsql as
    $$ begin raise exception 'sorry, too many clients already' using errcode = '53300'; end $$`;
  await sql(store.database, refuse);
  await sql(store.database, 'alter table pet add constraint refuse check (refuse()) not valid');
  try {
    await work();
  } finally {
    await sql(store.database, 'alter table pet drop constraint refuse');
    await sql(store.database, 'drop function refuse()');
  }
}

const failure = { code: 'SERVICE_UNAVAILABLE', status: 503 };
const message = 'The database cannot be reached; try again shortly.';

test('a 503 with Retry-After says so on both faces', async () => {
  await whileRefused(async () => {
    const created = await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
    expect([created.status, created.json, created.headers['retry-after']]).toEqual([503, { ...failure, message }, '1']);

    const query = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';
    const error = {
      message,
      locations: [{ line: 1, column: 12 }],
      path: ['createPet'],
      extensions: { ...failure, retryAfter: 1 },
    };
    // Interpreted, and compiled.
    for (let time = 0; time < 3; time += 1) {
      const { data, errors, headers } = await graphqlText(store, { query });
      expect({ data, errors }).toEqual({ data: null, errors: [error] });
      expect(headers['retry-after']).toBe('1');
    }
  });
});

test('whoever fails otherwise is not told to wait', async () => {
  for (const query of ['{ pets(limit: 0) { id } }', '{ nothing }', '{', '{ pets { id } }']) {
    const { errors = [], headers } = await graphqlText(store, { query });
    for (const { extensions } of errors) expect(extensions).not.toHaveProperty('retryAfter');
    expect(headers).not.toHaveProperty('retry-after');
  }
});

test('a 429 says how long to wait, whether an operation is refused or the request', async () => {
  await onNode(store, { QUOTA_PER_MINUTE: '2', AUTH_FAILURES_PER_MINUTE: '1' }, async (node) => {
    const query = '{ a: pets(limit: 1) { id } b: pets(limit: 1) { id } c: pets(limit: 1) { id } }';
    const over = await graphqlText(node, { query });
    // There are no animals: each of them costs one, and the third cannot be paid.
    expect(over.errors?.map(({ path }) => path)).toEqual([['c']]);

    const guess = () => send(node.origin, { path: '/graphql', headers: { authorization: `Bearer ${createSecret()}` } });
    await guess();
    const { status, headers, text } = await guess();
    for (const [answer, errors] of [
      [over, over.errors],
      [{ status, headers }, JSON.parse(text).errors],
    ] as const) {
      const retryAfter = Number(answer.headers['retry-after']);
      expect(answer.status).toBe(429);
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(60);
      expect(errors).toMatchObject([{ extensions: { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter } }]);
    }
  });
});
