import { sql } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();
beforeEach(() => store.empty());

/**
 * Makes the database refuse the name Bella as if it had no connection left. No
 * trigger: Citus has none.
 */
async function refuseBella(): Promise<void> {
  await sql(store.database, 'alter table pet drop constraint if exists refuse');
  const refuse = `create or replace function refuse(name text) returns bool language plpgsql as $$ begin
    if name = 'Bella' then raise exception 'sorry, too many clients already' using errcode = '53300'; end if;
    return true; end $$`;
  await sql(store.database, refuse);
  await sql(
    store.database,
    'alter table pet add constraint refuse check (refuse(name)) not valid',
  );
}

const rex = 'rex: createPet(input: { name: "Rex", categoryId: 5 }) { id }';
const ada = 'ada: createPet(input: { name: "Ada", categoryId: 5 }) { id }';
const bella =
  'bella: createPet(input: { name: "Bella", categoryId: 5 }) { id }';

test.each([
  ['beside each other', `mutation { ${rex} ${bella} ${ada} }`],
  [
    'in a fragment',
    `mutation { ... { ${rex} ${bella} } ...A } fragment A on Mutation { ${ada} }`,
  ],
])(
  'a request whose second mutation fails has no Retry-After, and its third is not run, %s',
  async (_, query) => {
    await refuseBella();
    for (let time = 1; time <= 3; time++) {
      const { data, errors, headers } = await graphqlText(store, { query });
      const error = {
        path: ['bella'],
        extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 1 },
      };
      expect({ data, errors }).toMatchObject({ data: null, errors: [error] });
      expect(headers).not.toHaveProperty('retry-after');
      expect((await rest(store, '/v1/pets')).json).toMatchObject(
        Array(time).fill({ name: 'Rex' }),
      );
    }
  },
);

test('a 503 with Retry-After has the seconds, the path and the location in its error, too', async () => {
  await refuseBella();
  const message = 'The database cannot be reached; try again shortly.';
  const place = { locations: [{ line: 1, column: 12 }], path: ['bella'] };
  const error = {
    message,
    ...place,
    extensions: { code: 'SERVICE_UNAVAILABLE', status: 503, retryAfter: 1 },
  };
  // Interpreted, and compiled.
  for (let time = 0; time < 3; time += 1) {
    const { data, errors, headers } = await graphqlText(store, {
      query: `mutation { ${bella} }`,
    });
    expect({ data, errors, wait: headers['retry-after'] }).toEqual({
      data: null,
      errors: [error],
      wait: '1',
    });
  }
});
