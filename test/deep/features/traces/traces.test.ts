import { databaseForEach } from '../../../support/fixtures.ts';
import { graphqlText, graphqlThrice } from '../../../support/graphql.ts';
import { send } from '../../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../../support/jest.ts';
import {
  type Env,
  eventually,
  bootstrapKey as key,
  type ServerProcess,
  startServer,
} from '../../../support/process.ts';
import { linesOf, requestsFor } from '../../../support/process-log.ts';
import { type OtlpReceiver, type ReceivedSpan, startReceiver } from './otlp.ts';

const database = databaseForEach();
let collector: OtlpReceiver;
beforeEach(async () => {
  collector = await startReceiver();
});
afterEach(() => collector.close());

const traced = () => ({
  BOOTSTRAP_API_KEY: key,
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
});
const start = (env: Env = {}) =>
  startServer({ ...database.env, ...traced(), ...env }, { until: '/livez' });
const get = (
  { origin }: ServerProcess,
  path: string,
  headers: Record<string, string> = {},
) =>
  send(origin, {
    path,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
const ids = (spans: Array<{ spanId: string }>) =>
  spans.map(({ spanId }) => spanId);

/**
 * Stops the server, which sends its last spans. @returns all spans but those of
 * `/livez`
 */
async function spansAfter(server: ServerProcess): Promise<ReceivedSpan[]> {
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  return collector.spans.filter(
    ({ attributes }) => attributes['http.route'] !== '/livez',
  );
}

const remote = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
};
const sampled = { traceparent: `00-${remote.traceId}-${remote.spanId}-01` };
const unsampled = { traceparent: `00-${remote.traceId}-${remote.spanId}-00` };

test('a request is a span in the trace of its client, and its log line has the trace id', async () => {
  const server = await start({
    OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  });
  await get(server, '/v1/pets?status=sold', sampled);
  const spans = await spansAfter(server);
  const span = spans.find(({ kind }) => kind === 2);
  expect(span).toMatchObject({
    name: 'GET /v1/pets',
    traceId: remote.traceId,
    parentSpanId: remote.spanId,
    status: 0,
  });
  expect(span?.attributes).toEqual({
    'http.request.method': 'GET',
    'http.route': '/v1/pets',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'url.path': '/v1/pets',
    'client.address': '127.0.0.1',
    'network.protocol.version': '1.1',
  });
  expect(span?.resource).toMatchObject({
    'service.name': 'shop',
    'deployment.environment.name': 'test',
  });
  const [query] = spans.filter(({ kind }) => kind === 3);
  expect(query).toMatchObject({
    name: 'list pet',
    traceId: remote.traceId,
    parentSpanId: span?.spanId,
    links: [],
  });
  expect(query?.attributes).toEqual({
    'db.system.name': 'postgresql',
    'db.collection.name': 'pet',
    'db.operation.name': 'list',
  });
  expect(requestsFor(server.output.stdout, '/v1/pets')).toMatchObject([
    { traceId: remote.traceId },
  ]);
  expect(collector.requests[0]).toMatchObject({
    url: '/v1/traces',
    headers: { 'content-type': 'application/x-protobuf' },
  });
});

test('a GraphQL operation is a span named after its type, compiled or not; a failure has our code even with status 200', async () => {
  const server = await start();
  await graphqlThrice(server, { query: 'query Shop { pets { id } }' });
  await graphqlText(server, { query: '{ pets(limit: 0) { id } }' });
  const spans = await spansAfter(server);
  const operations = spans.filter(({ kind }) => kind === 1);
  expect(operations.map(({ name, attributes }) => [name, attributes])).toEqual([
    ...Array(3).fill(['query', { 'graphql.operation.type': 'query' }]),
    [
      'query',
      { 'graphql.operation.type': 'query', 'error.type': 'BAD_USER_INPUT' },
    ],
  ]);
  for (const { traceId, parentSpanId, spanId } of operations.slice(0, 3)) {
    const request = spans.find((span) => span.spanId === parentSpanId);
    expect(request).toMatchObject({
      name: 'POST /graphql',
      kind: 2,
      traceId,
      parentSpanId: '',
    });
    expect(spans.filter((span) => span.parentSpanId === spanId)).toMatchObject([
      { name: 'list pet', kind: 3 },
    ]);
  }
  const failed = spans.filter(
    ({ kind, attributes }) =>
      kind === 2 && attributes['error.type'] !== undefined,
  );
  expect(failed.map(({ attributes }) => attributes)).toMatchObject([
    { 'http.response.status_code': 200, 'error.type': 'BAD_USER_INPUT' },
  ]);
});

test('a batch that serves several requests is linked to each request, and each request to the batch', async () => {
  const server = await start();
  await Promise.all(
    Array.from({ length: 32 }, (_, at) =>
      get(server, `/v1/pets?limit=${1 + (at % 4)}`),
    ),
  );
  const spans = await spansAfter(server);
  const requests = spans.filter(({ kind }) => kind === 2);
  const batches = spans.filter(({ name }) => name === 'list pet');
  expect(requests).toHaveLength(32);
  expect(batches.some(({ links }) => links.length > 1)).toBe(true);
  const sizes = batches.map(({ attributes }) =>
    Number(attributes['db.operation.batch.size'] ?? 1),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(32);
  for (const { links, parentSpanId, spanId, traceId, attributes } of batches) {
    expect(ids(links.length === 0 ? requests : links)).toContain(parentSpanId);
    if (links.length > 0)
      expect(attributes['db.operation.batch.size']).toBe(links.length);
    for (const link of links) {
      const request = requests.find((one) => one.spanId === link.spanId);
      expect(request).toMatchObject({
        traceId: link.traceId,
        links: [{ traceId, spanId }],
      });
    }
  }
  const served = batches.flatMap(({ links, parentSpanId }) =>
    links.length > 0 ? ids(links) : parentSpanId,
  );
  expect(served.sort()).toEqual(ids(requests).sort());
});

test('a batch is not linked to its requests that are not sampled', async () => {
  const server = await start({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
  await Promise.all(
    Array.from({ length: 32 }, (_, at) =>
      get(server, '/v1/pets', at % 2 ? unsampled : sampled),
    ),
  );
  const spans = await spansAfter(server);
  const requests = spans.filter(({ kind }) => kind === 2);
  expect(requests).toHaveLength(16);
  const linked = ids(
    spans.filter(({ kind }) => kind === 3).flatMap(({ links }) => links),
  );
  expect(ids(requests)).toEqual(expect.arrayContaining(linked));
});

test('no span contains a key, a query or another text of the client in which a key may be hidden', async () => {
  const secret = `ask_${'s3cret'.repeat(8)}`;
  const server = await start({ TRUST_PROXY: '1' });
  await get(server, `/v1/pets?key=${secret}`, {
    ...sampled,
    tracestate: `shop=${secret}`,
    baggage: `key=${secret}`,
    'x-forwarded-for': secret,
    'x-request-id': secret,
    'user-agent': secret,
    host: `${secret}.example`,
  });
  await get(server, `/v1/pets/${secret}`, {
    authorization: `Bearer ${secret}`,
    'x-forwarded-for': `fe80::1%${key}`,
  });
  await get(server, `/${encodeURIComponent(secret).replace('a', '%61')}`);
  await graphqlText(server, {
    query: `query ${secret} { ${secret}: pets { id } }`,
  });
  const spans = await spansAfter(server);
  expect(spans.filter(({ kind }) => kind === 2).length).toBeGreaterThanOrEqual(
    4,
  );
  expect(collector.text).not.toContain('s3cret');
  expect(collector.text).not.toContain(key);
});

test('a collector that hangs or refuses delays neither requests nor the shutdown; the log has one line when spans are lost, and one when they are not any more', async () => {
  const [lost, back] = [
    [40, 'spans cannot be sent and are lost'],
    [30, 'spans are no longer lost'],
  ];
  const { answer } = collector;
  // The exporter sends every 20 ms, and gives up after a second.
  const server = await start({
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
  });
  const lines = () =>
    linesOf(server.output.stdout).filter(({ msg }) => /^spans /.test(msg));
  const until = (isTrue: () => boolean) =>
    eventually(async () => {
      expect((await get(server, '/v1/pets')).status).toBe(200);
      return isTrue();
    });
  collector.answer = () => undefined;
  await until(() => collector.requests.length >= 5 && lines().length > 0);
  collector.answer = answer;
  await until(() => lines().at(-1)?.msg === back[1]);
  collector.answer = (response) => void response.writeHead(400).end('no');
  await until(() => lines().at(-1)?.msg === lost[1]);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  // On a busy machine the collector's answers may be late, too.
  expect(lines().map(({ level, msg }) => [level, msg])).toEqual(
    lines().map((_, at) => (at % 2 ? back : lost)),
  );
});

test('the shutdown waits two seconds at most for the collector, regardless of the time limits of the exporter and of the drain', async () => {
  collector.answer = () => undefined;
  const server = await start({
    OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    DRAIN_TIMEOUT_MS: '1900',
  });
  await get(server, '/v1/pets');
  // Without that limit the shutdown would take ten minutes, longer than a test
  // may.
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(collector.spans.map(({ name }) => name)).toContain('GET /v1/pets');
});

test('an exporter other than otlp is named in the log, and nothing is sent', async () => {
  const server = await start({ OTEL_TRACES_EXPORTER: 'zipkin' });
  expect(await spansAfter(server)).toEqual([]);
  const unknown = linesOf(
    server.output.stdout,
    'OTEL_TRACES_EXPORTER: only otlp is known here',
  );
  expect(unknown).toMatchObject([{ level: 40, exporter: 'zipkin' }]);
});
