import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { expect, test } from '../../../support/jest.ts';
import { startAndFail, startServer } from '../../../support/process.ts';

const key = 'a-key-for-these-tests-and-no-others';
const query = 'query Names { pets { name } }';
const database = databaseForEach();

test('APOLLO_KEY reports usage to GraphOS, as in every Apollo Server; APOLLO_PLUGINS names a module', async () => {
  const reports: Array<{
    url: string | undefined;
    key: unknown;
    content: string;
  }> = [];
  const graphos = createServer(async (request, response) => {
    const { url, headers } = request;
    const content = gunzipSync(await buffer(request)).toString('latin1');
    reports.push({ url, key: headers['x-api-key'], content });
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await once(graphos.listen(0, '127.0.0.1'), 'listening');
  const { port } = graphos.address() as AddressInfo;
  try {
    // Apollo's plugin takes no address from the environment.
    const plugins = join(await newFolder(), 'plugins.mjs');
    writeFileSync(
      plugins,
      `const { fetch } = globalThis;
globalThis.fetch = (url, init) => fetch(url.replace('https://usage-reporting.api.apollographql.com', 'http://127.0.0.1:${port}'), init);
export default { serverWillStart: async ({ logger }) => logger.info('a plugin starts') };`,
    );
    const apollo = {
      APOLLO_PLUGINS: plugins,
      APOLLO_KEY: 'service:animals:secret',
      APOLLO_GRAPH_REF: 'animals@current',
    };
    const server = await startServer({
      ...database.env,
      ...apollo,
      BOOTSTRAP_API_KEY: key,
    });
    const headers = { 'apollographql-client-name': 'a-client' };
    for (let time = 1; time <= 3; time += 1) {
      expect(await graphqlText(server, { query }, key, headers)).toMatchObject({
        status: 200,
        data: { pets: [] },
      });
    }
    const { stdout, code } = await server.stop('SIGTERM');
    expect(code).toBe(0);
    expect(stdout).toContain('a plugin starts');
    expect(stdout).toContain('"APOLLO_KEY":"set"');
    expect(stdout).not.toContain('service:animals:secret');
    expect(reports).toEqual([
      {
        url: '/api/ingress/traces',
        key: 'service:animals:secret',
        content: expect.stringContaining('a-client'),
      },
    ]);
    expect(reports[0]?.content).toContain('# Names\nquery Names{pets{name}}');
  } finally {
    graphos.close();
  }
});

test('Apollo Server reports a key without a graph; the service reports a module that cannot be loaded', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: key };
  const server = await startServer({
    ...env,
    APOLLO_KEY: 'service:animals:secret',
  });
  expect((await server.stop('SIGTERM')).stdout).toContain(
    'set the `APOLLO_GRAPH_REF` environment variable',
  );
  expect(
    (await startAndFail({ ...env, APOLLO_PLUGINS: 'none.js' })).stderr,
  ).toMatch(/none\.js \(APOLLO_PLUGINS\) cannot be loaded: /);
});
