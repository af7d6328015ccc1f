import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import {
  eventually,
  onPostgres,
  startServer,
} from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';

const database = databaseForEach();

test.each([
  ['true', '/ /guide /docs /graphiql /graphql'],
  ['false', '/ /guide /docs'],
])('with EXPLORER=%s the start shows %s', async (EXPLORER, pages) => {
  const server = await startServer({ ...database.env, EXPLORER });
  const addresses = pages.split(' ').map((path) => server.origin + path);
  const shown = `\nExplore:  ${addresses.join('   ')}\n`;
  // With a PostgreSQL there is no first key, and no welcome.
  if (!onPostgres)
    await eventually(async () => server.output.stdout.includes(shown));
  const { stdout } = await server.stop();
  expect(linesOf(stdout, 'started')).toMatchObject([{ pages }]);
});
