import { createTestDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { OtlpReceiver } from '../../support/otlp.ts';
import { type Env, eventually, type ServerProcess, startServer } from '../../support/process.ts';
import { linesOf } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createTestDatabase);
let collector: OtlpReceiver;
beforeEach(async () => {
  collector = await OtlpReceiver.start();
});
afterEach(() => collector.close());

/** Sends every 20 ms, and gives up after 100. */
const impatient = { OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_EXPORTER_OTLP_TIMEOUT: '100' };
const start = (env: Env) => startServer({ ...database.env, BOOTSTRAP_API_KEY: key, ...env });
const list = ({ origin }: ServerProcess) =>
  send(origin, { path: '/v1/pets', headers: { authorization: `Bearer ${key}` } });
const told = ({ output }: ServerProcess) =>
  linesOf(output.stdout)
    .filter(({ msg }) => /^spans /.test(msg))
    .map(({ level, msg }) => [level, msg]);

const lost = [40, 'spans cannot be sent and are lost'];

test('a collector that hangs delays no request and no shutdown, and is told once', async () => {
  collector.answer = () => undefined;
  const server = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, ...impatient });
  await eventually(async () => {
    expect((await list(server)).status).toBe(200);
    return collector.requests.length >= 5 && told(server).length > 0;
  });
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(told(server)).toEqual([lost]);
});

test('the end waits for it two seconds at most, whatever its own time limit is, and that of the requests', async () => {
  collector.answer = () => undefined;
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '600000' };
  const server = await start({ ...env, DRAIN_TIMEOUT_MS: '300' });
  await list(server);
  // Without a clock it would take ten minutes, which is more than a test may.
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(collector.spans.map(({ name }) => name)).toContain('GET /v1/pets');
});

test('one that refuses for a while is told when it is back', async () => {
  const { answer } = collector;
  collector.answer = (response) => void response.writeHead(400).end('no');
  const server = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, ...impatient });
  const until = (lines: number) =>
    eventually(async () => {
      await list(server);
      return told(server).length === lines;
    });
  await until(1);
  collector.answer = answer;
  await until(2);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(told(server)).toEqual([lost, [30, 'spans are no longer lost']]);
});

test('OTEL_TRACES_EXPORTER alone asks for it; what is not known is told, and nothing is sent', async () => {
  const server = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_TRACES_EXPORTER: 'zipkin' });
  await list(server);
  const { stdout } = await server.stop();
  expect(linesOf(stdout).filter(({ level, key: id }) => level === 40 && id === undefined)).toMatchObject([
    { exporter: 'zipkin', msg: 'OTEL_TRACES_EXPORTER: only otlp is known here' },
  ]);
  expect(collector.requests).toEqual([]);
});
