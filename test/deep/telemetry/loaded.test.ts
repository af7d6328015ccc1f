import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isTraced } from '../../../src/runtime/telemetry/telemetry.ts';
import { createTestDatabase, newFolder } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { type Env, freePort, startServer } from '../../support/process.ts';

const key = 'a-key-for-these-tests-and-no-others';
/** Nobody listens there. */
const endpoint = 'http://127.0.0.1:9';
const database = databaseForEach(createTestDatabase);

/** The packages for telemetry whose code a server has run, as V8's coverage knows. */
async function loadedBy(env: Env): Promise<string[]> {
  const folder = await newFolder();
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, NODE_V8_COVERAGE: folder, ...env });
  await send(server.origin, { path: '/v1/pets', headers: { authorization: `Bearer ${key}` } });
  expect(await server.stop()).toMatchObject({ code: 0 });
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  rmSync(folder, { recursive: true });
  const urls = texts.flatMap((text) => (JSON.parse(text) as { result: Array<{ url: string }> }).result);
  expect(urls.some(({ url }) => url.includes('node_modules/fastify/'))).toBe(true);
  const names = urls.map(({ url }) => /node_modules\/(@(?:opentelemetry|prometheus-io)\/[^/]+)/.exec(url)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

test('what is not asked for is not even loaded', async () => {
  expect(await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: 'none' })).toEqual([]);
  for (const env of [
    { OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER: 'always_on' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'true' },
  ]) {
    expect(isTraced(env, { warn: () => undefined })).toBe(false);
  }
});

test('metrics load no SDK of traces', async () => {
  const loaded = await loadedBy({ OPERATIONS_PORT: `${await freePort()}` });
  expect(loaded).toEqual(['@opentelemetry/api', '@prometheus-io/client']);
});

test('traces load it, also when no collector listens', async () => {
  expect(await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toContain('@opentelemetry/sdk-trace');
});
