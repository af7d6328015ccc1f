import { databaseForEach } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import { expect, test } from '../../../support/jest.ts';
import { startWorkers } from '../workers/start.ts';
import { startReceiver } from './otlp.ts';

const database = databaseForEach();

test('each worker sends its own spans', async () => {
  const collector = await startReceiver();
  const OTEL_EXPORTER_OTLP_ENDPOINT = collector.endpoint;
  const env = { ...database.env, OTEL_EXPORTER_OTLP_ENDPOINT };
  const server = await startWorkers(env, 2);
  const headers = {
    authorization: `Bearer ${server.key}`,
    connection: 'close',
  };
  await Promise.all(
    Array.from({ length: 8 }, () =>
      send(server.origin, { path: '/v1/pets', headers }),
    ),
  );
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  collector.close();
  const requests = collector.spans.filter(
    ({ name }) => name === 'GET /v1/pets',
  );
  expect(requests).toHaveLength(8);
  expect(
    new Set(requests.map(({ resource }) => resource['process.pid'])).size,
  ).toBe(2);
});
