import { databaseForEach } from '../../support/each.ts';
import { graphqlText } from '../../support/graphql.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { Road } from '../../support/road.ts';

const database = databaseForEach();
let road: Road;
afterEach(() => {
  road?.cut();
});

(onPostgres ? test : test.skip)(
  'a PostgreSQL that falls silent is given up, and taken back when it answers (PostgreSQL only)',
  async () => {
    road = new Road(new URL((database.env as { DATABASE_URL: string }).DATABASE_URL));
    await road.open();
    const server = await startServer({
      DATABASE_URL: road.url,
      DATABASE_STATEMENT_TIMEOUT_MS: '500',
      DATABASE_CONNECT_TIMEOUT_MS: '1000',
      BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others',
    });
    expect((await rest(server, '/v1/pets')).status).toBe(200);

    road.isSilent = true;
    const [listed, found, created, asked] = await Promise.all([
      rest(server, '/v1/pets'),
      rest(server, '/v1/pets/1'),
      rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } }),
      graphqlText(server, { query: '{ pets { id } }' }),
    ]);
    for (const { status, json } of [listed, found, created]) {
      expect({ status, json }).toMatchObject({ status: 503, json: { code: 'SERVICE_UNAVAILABLE', status: 503 } });
    }
    expect(asked.errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE', status: 503 } }]);

    road.isSilent = false;
    await eventually(async () => (await rest(server, '/v1/pets')).status === 200);
  },
);
