import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { features } from '../../../src/features.ts';
import { databaseForAll } from '../../support/fixtures.ts';
import { graphqlText, graphqlThrice } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { beforeAll, beforeEach, expect, test } from '../../support/jest.ts';
import {
  type MeasuredServer,
  type Series,
  startMeasured,
} from '../../support/metrics.ts';
import { bootstrapKey, cli, eventually } from '../../support/process.ts';
import { requestText } from '../../support/raw.ts';
import { allMetrics } from './measured.ts';

const database = databaseForAll();
let server: MeasuredServer;
/** The values before a test, because all tests share one server. */
let before: Series;
beforeAll(async () => {
  server = await startMeasured({ ...database.env, WEBHOOKS: 'true' });
});
beforeEach(async () => {
  before = await server.metrics();
});

const authorization = `Bearer ${bootstrapKey}`;
const rest = (
  path: string,
  method = 'GET',
  body?: object,
  headers: Record<string, string> = { authorization },
) =>
  send(server.origin, {
    path,
    method,
    headers: {
      ...headers,
      ...(body && { 'content-type': 'application/json' }),
    },
    body: body && JSON.stringify(body),
  });
const rex = { name: 'Rex', categoryId: 1 };

/**
 * Waits until a series has grown by this value. A request is counted after its
 * last byte was handed over, which may be after the client has its response.
 * @returns the growth of every series in this test
 */
async function counted(series: string, value: number): Promise<Series> {
  let grown: Series = new Map();
  await eventually(async () => {
    const now = await server.metrics();
    grown = new Map(
      [...now].map(([name, at]) => [name, at - (before.get(name) ?? 0)]),
    );
    return grown.get(series) === value;
  });
  return grown;
}

/** The count and the sum of a histogram. */
const histogram = (series: Series, name: string, labels: string) => ({
  count: series.get(`${name}_count{${labels}}`),
  sum: series.get(`${name}_sum{${labels}}`) ?? 0,
});
const operations = (api: string, operation: string, code: string) =>
  `animal_store_operations_total{api="${api}",operation="${operation}",code="${code}"}`;

test('every metric is served in Prometheus’ text format', async () => {
  const { status, headers, text } = await send(server.operations, {
    path: '/metrics',
  });
  expect([status, headers['content-type']]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    .map(([, name, type]) => [name, type])
    .sort();
  // Only the parent of workers has this metric.
  const ofOneProcess = (await allMetrics()).filter(
    ({ name }) => name !== 'animal_store_workers_silent',
  );
  expect(types).toEqual(
    ofOneProcess.map(({ name, type }) => [name, type]).sort(),
  );
  expect(
    (
      await send(server.origin, {
        path: '/metrics',
        headers: { authorization },
      })
    ).status,
  ).toBe(404);
});

test('requests are counted by method, route and status, with their durations', async () => {
  await rest('/v1/pets?limit=5');
  await rest('/v1/pets', 'POST', rex);
  await rest('/v1/pets/1');
  await rest('/v1/pets/999999');
  await rest('/v1/pets/none');
  const of = (method: string, route: string, status: number) =>
    `http_request_method="${method}",http_route="${route}",http_response_status_code="${status}"`;
  const name = 'http_server_request_duration_seconds';
  const series = await counted(
    `${name}_count{${of('GET', '/v1/pets/:petId', 404)}}`,
    2,
  );
  for (const labels of [
    of('GET', '/v1/pets', 200),
    of('POST', '/v1/pets', 201),
    of('GET', '/v1/pets/:petId', 200),
  ]) {
    const { count, sum } = histogram(series, name, labels);
    expect([labels, count, sum > 0]).toEqual([labels, 1, true]);
    expect(series.get(`${name}_bucket{le="+Inf",${labels}}`)).toBe(1);
  }
  expect(series.get('http_server_active_requests')).toBe(0);
});

test('operations are counted by api, name and code; in GraphQL each root field counts, with the error at its path', async () => {
  await rest('/v1/pets');
  await rest('/v1/pets?limit=0');
  await graphqlText(server, {
    query:
      '{ first: pets(limit: 1) { id } second: pets(limit: 0) { id } pet(id: 1) { id } }',
  });
  await graphqlText(server, { query: '{ pets { none } }' });
  // Refused before the operation is known.
  await graphqlText(server, { query: 5 });
  await graphqlText(server, {
    query:
      'query ($n: Int!) { petsConnection(first: $n) { edges { node { id } } } }',
  });
  await graphqlThrice(server, {
    query: '{ petsConnection { edges { node { id } } } }',
  });
  const series = await counted(
    operations('graphql', 'petsConnection', 'OK'),
    3,
  );
  const grown = [...series].filter(
    ([name, value]) =>
      name.startsWith('animal_store_operations_total') && value > 0,
  );
  expect(grown.sort()).toEqual(
    [
      [operations('rest', 'listPets', 'OK'), 1],
      [operations('graphql', 'pets', 'OK'), 1],
      [operations('graphql', 'petsConnection', 'OK'), 3],
      [operations('graphql', 'pet', 'OK'), 1],
      [operations('rest', 'listPets', 'BAD_USER_INPUT'), 1],
      [operations('graphql', 'pets', 'BAD_USER_INPUT'), 1],
      [operations('graphql', 'other', 'GRAPHQL_VALIDATION_FAILED'), 1],
      [operations('graphql', 'other', 'BAD_USER_INPUT'), 1],
      [operations('graphql', 'petsConnection', 'BAD_USER_INPUT'), 1],
    ].sort(),
  );
  const { count } = histogram(
    series,
    'animal_store_operation_duration_seconds',
    'api="graphql",operation="pets"',
  );
  expect(count).toBe(2);
});

test('round trips are counted with their batch sizes; queues and connections have gauges', async () => {
  await Promise.all(
    Array.from({ length: 40 }, () => rest('/v1/pets', 'POST', rex)),
  );
  const name = 'db_client_operation_batch_size';
  const series = await counted(
    `${name}_sum{db_collection_name="pet",db_operation_name="insert"}`,
    40,
  );
  const { count } = histogram(
    series,
    name,
    'db_collection_name="pet",db_operation_name="insert"',
  );
  expect(count).toBeLessThan(40);
  const labels =
    'db_collection_name="pet",db_operation_name="insert",error_type=""';
  expect(
    histogram(series, 'db_client_operation_duration_seconds', labels).count,
  ).toBe(count);
  expect(
    series.get(
      'animal_store_queue_waiting{collection="pet",operation="insert"}',
    ),
  ).toBe(0);
  const now = await server.metrics();
  expect(now.get('db_client_connection_max{pool="primary"}')).toBe(10);
  expect(
    now.get('db_client_connection_count{pool="primary",state="idle"}'),
  ).toBeGreaterThan(0);
  expect(now.get('animal_store_dependency_up{dependency="postgresql"}')).toBe(
    1,
  );
  expect(now.get('animal_store_workers_up')).toBe(1);
});

test('refused keys, key look-ups and calls of deprecated operations are counted', async () => {
  const issued = await cli(
    ['keys', 'issue', '--name', 'shop “front”\\', '--scope', 'read', '--json'],
    database.env,
  );
  const { key: readers } = JSON.parse(issued.stdout);
  const reader = { authorization: `Bearer ${readers}` };
  await rest('/v1/pets', 'GET', undefined, {});
  await rest('/v1/pets', 'GET', undefined, {
    authorization: `Bearer ask_${'0'.repeat(48)}`,
  });
  await rest('/v1/pets', 'POST', rex, reader);
  await rest('/v1/pets/1', 'GET', undefined, reader);
  await graphqlText(server, { query: '{ pet(id: 1) { id } }' }, readers);
  const series = await counted(
    'animal_store_deprecated_calls_total{operation="Query.pet",key="shop “front”\\\\"}',
    1,
  );
  expect(
    series.get(
      'animal_store_deprecated_calls_total{operation="getPet",key="shop “front”\\\\"}',
    ),
  ).toBe(1);
  expect(
    series.get(
      'animal_store_auth_refusals_total{code="UNAUTHENTICATED",reason=""}',
    ),
  ).toBe(2);
  expect(
    series.get('animal_store_auth_refusals_total{code="FORBIDDEN",reason=""}'),
  ).toBe(1);
  expect(
    series.get('animal_store_key_lookups_total{result="known"}'),
  ).toBeGreaterThanOrEqual(1);
});

test('a request whose client disconnects before the response is counted as aborted, without a status', async () => {
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
  const headers = `Authorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`;
  socket.write(requestText('POST /v1/pets', headers, '{"name":'));
  await counted('http_server_active_requests', 1);
  expect(
    (await server.metrics()).get('animal_store_connections'),
  ).toBeGreaterThanOrEqual(1);
  socket.destroy();
  const series = await counted('http_server_aborted_requests_total', 1);
  const labels =
    'http_request_method="POST",http_route="/v1/pets",http_response_status_code=""';
  expect(
    histogram(series, 'http_server_request_duration_seconds', labels).count,
  ).toBe(1);
});

test('docs/observe.md describes every metric with its labels, and no other metric', async () => {
  const rows = readFileSync('docs/observe.md', 'utf8')
    .split('\n')
    .filter((line) =>
      /^\| `(?:http|db|animal_store|nodejs|v8js|process)_/.test(line),
    );
  const documented = rows.flatMap((row) => {
    const [, names = '', type = '', labels = ''] = row
      .split('|')
      .map((cell) => cell.trim());
    const words = (cell: string) =>
      [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(
        ([, word]) => word,
      );
    return words(names).map((name) => [name, type, words(labels)]);
  });
  const known = (await allMetrics()).map(({ name, type, labels }) => [
    name,
    type,
    labels,
  ]);
  expect(documented).toEqual(expect.arrayContaining(known));
  // A deleted feature has its variables only; the page still describes it.
  const isWhole = features.every((one) => Object.keys(one).length > 2);
  if (isWhole) expect(documented).toHaveLength(known.length);
});
