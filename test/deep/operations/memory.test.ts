import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { bootstrapKey, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { sessionWith } from '../../support/session.ts';

/** Responses that together exceed the memory of the process. */
const database = databaseForEach(createOwnDatabase);

test('many concurrent pages of the largest size neither end a process with a small heap nor delay other requests', async () => {
  const env = {
    ...database.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
    LOG_LEVEL: 'silent',
  };
  // No statement times out, even on a busy machine.
  const patience = { DATABASE_STATEMENT_TIMEOUT_MS: '600000' };
  const server = await startServer({
    ...env,
    ...patience,
    NODE_OPTIONS: '--max-old-space-size=128',
  });
  const [place] = Object.values(database.env) as [string];
  const session = await sessionWith(place);
  // Animals with the longest names that can be added.
  await session.query(`insert into pet (name, category_id, status)
    select repeat('\u{1f436}', 1000), 1, 'available' from generate_series(1, 201)`);
  await session.end();
  const { json } = await rest(server, '/v1/pets', {
    method: 'POST',
    json: { name: 'Rex', categoryId: 1 },
  });

  const lists = Array.from({ length: 64 }, (_, at) =>
    rest(server, `/v1/pets?limit=${37 + at}&after=${at}`),
  );
  const aliases = Array.from(
    { length: 16 },
    (_, at) => `a${at}: pets(limit: ${85 + at}) { id name }`,
  );
  const query = graphqlText(server, { query: `{ ${aliases.join(' ')} }` });
  const others = Array.from({ length: 12 }, () =>
    rest(server, `/v1/pets?after=${json.id - 1}&limit=1`),
  );

  expect((await Promise.all(others)).map((response) => response.json)).toEqual(
    Array(12).fill([json]),
  );
  const pages = (await Promise.all(lists)).map(({ status, json }) => [
    status,
    json.length,
  ]);
  expect(pages).toEqual(Array.from({ length: 64 }, (_, at) => [200, 37 + at]));
  const { data, errors } = await query;
  expect(errors).toBeUndefined();
  expect(
    Object.values(data as Record<string, unknown[]>).map(
      ({ length }) => length,
    ),
  ).toEqual(Array.from({ length: 16 }, (_, at) => 85 + at));
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
