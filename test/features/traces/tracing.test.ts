import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import {
  loggingErrorHandler,
  setGlobalErrorHandler,
} from '@opentelemetry/core';
import { SamplingDecision } from '@opentelemetry/sdk-trace';
import { isTraced } from '#engine/features/traces/index.js';
import { openTracing, samplerFromEnv } from '#engine/features/traces/traces.js';
import { expect, test } from '../../support/jest.ts';

const remote = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
};

/** Sets environment variables while work runs. */
function withEnv<T>(env: Record<string, string>, work: () => T): T {
  Object.assign(process.env, env);
  try {
    return work();
  } finally {
    for (const name of Object.keys(env)) delete process.env[name];
  }
}

test.each([
  [
    'by default all but those that the client does not sample',
    {},
    [true, true, false],
  ],
  [
    'always_off: nothing',
    { OTEL_TRACES_SAMPLER: 'always_off' },
    [false, false, false],
  ],
  [
    'parentbased_always_off: those that the client samples',
    { OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
    [false, true, false],
  ],
  [
    'a ratio of 0: nothing',
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
    [false, false, false],
  ],
  ['always_on: all', { OTEL_TRACES_SAMPLER: 'always_on' }, [true, true, true]],
])(
  'of new traces, sampled ones and unsampled ones, the sampler takes %s',
  (_, env, expected) => {
    const sampler = withEnv(env as Record<string, string>, samplerFromEnv);
    const of = (traceFlags?: TraceFlags) => {
      const parent =
        traceFlags === undefined
          ? undefined
          : { ...remote, traceFlags, isRemote: true };
      const context = parent
        ? trace.setSpanContext(ROOT_CONTEXT, parent)
        : ROOT_CONTEXT;
      return sampler.shouldSample(
        context,
        remote.traceId,
        'GET',
        SpanKind.SERVER,
        {},
        [],
      ).decision;
    };
    const decisions = [of(), of(TraceFlags.SAMPLED), of(TraceFlags.NONE)];
    expect(
      decisions.map((one) => one === SamplingDecision.RECORD_AND_SAMPLED),
    ).toEqual(expected);
  },
);

test.each([
  [{}, false, []],
  [{ OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER: 'always_on' }, false, []],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, true, []],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_SDK_DISABLED: 'true',
    },
    false,
    [],
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_TRACES_EXPORTER: 'none',
    },
    false,
    [],
  ],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, true, []],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, false, ['zipkin']],
])('the variables %j switch traces on: %s', (env, isOn, names) => {
  const unknown: string[] = [];
  expect(isTraced(env as NodeJS.ProcessEnv, (name) => unknown.push(name))).toBe(
    isOn,
  );
  expect(unknown).toEqual(names);
});

test('the last spans are sent at the end; the log reports spans that the collector refuses as lost', async () => {
  const bodies: string[] = [];
  const statuses = [400, 200];
  const collector = createServer(async (request, response) => {
    bodies.push(await text(request));
    response
      .writeHead(statuses.shift() ?? 500, {
        'content-type': 'application/x-protobuf',
      })
      .end();
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const lines: string[] = [];
  let tracing = undefined as unknown as ReturnType<typeof openTracing>;
  const lost = new Promise<void>((resolve) => {
    const note = (_: object, message: string) => {
      lines.push(message);
      resolve();
    };
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
    };
    tracing = withEnv(env, () =>
      openTracing(
        { name: 'animal-store', version: '1.2.3' },
        { info: note, warn: note },
      ),
    );
  });
  tracing.tracer.startSpan('first').end();
  await lost;
  tracing.tracer.startSpan('second').end();
  await tracing.sendLastSpans();
  expect(lines).toEqual(['spans cannot be sent and are lost']);
  expect(bodies).toEqual([
    expect.stringContaining('first'),
    expect.stringContaining('second'),
  ]);
  for (const part of [
    'service.name',
    'animal-store',
    'service.version',
    '1.2.3',
  ])
    expect(bodies[1]).toContain(part);
  collector.close();
  setGlobalErrorHandler(loggingErrorHandler());
});
