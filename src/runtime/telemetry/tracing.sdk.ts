import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { getNumberFromEnv, setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { withTimeout } from '../with-timeout.ts';
import { ReportingExporter } from './reporting-exporter.ts';
import { samplerOf } from './sampler.ts';
import type { Log } from './telemetry.ts';
import type { Tracing } from './tracing.ts';

/** As many as the largest batch has inputs. */
const mostLinks = 256;

/**
 * The SDK, put together of its parts: `@opentelemetry/sdk-node` would do it, but brings gRPC, Zipkin, logs and metrics
 * along, 41 MB that take a quarter of a second to load. The exporter and the resource read their variables themselves;
 * the sampler's and the batches' are read here.
 */
export function startSdk(env: NodeJS.ProcessEnv, version: string, log: Log): Tracing {
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol !== 'http/protobuf') log.warn({ protocol }, 'spans are sent as http/protobuf, the only protocol here');
  const own = resourceFromAttributes({
    'service.name': 'animal-store',
    'service.version': version,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
  });
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env, log),
    spanLimits: { linkCountLimit: mostLinks },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new ReportingExporter(new OTLPTraceExporter(), log),
        ...given('maxQueueSize', 'OTEL_BSP_MAX_QUEUE_SIZE'),
        ...given('maxExportBatchSize', 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
        ...given('scheduledDelayMillis', 'OTEL_BSP_SCHEDULE_DELAY'),
        ...given('exportTimeoutMillis', 'OTEL_BSP_EXPORT_TIMEOUT'),
      }),
    ],
  });
  // What cannot be sent is told by the exporter, once.
  setGlobalErrorHandler(() => undefined);
  const propagator = new W3CTraceContextPropagator();
  return {
    tracer: provider.getTracer('animal-store', version),
    extract: (headers) => propagator.extract(ROOT_CONTEXT, headers, headerGetter),
    close: (milliseconds) => withTimeout(milliseconds, provider.shutdown(), late).catch(() => undefined),
  };
}

const late = () => new Error('The collector does not answer.');

/** Nothing is read but `traceparent`: the words of `tracestate` are the client's, and would be sent with each span. */
const headerGetter = {
  get: (headers: IncomingHttpHeaders, name: string) => (name === 'traceparent' ? headers[name] : undefined),
  keys: () => ['traceparent'],
};

function given<Name extends string>(name: Name, variable: string): { [Member in Name]?: number } {
  const value = getNumberFromEnv(variable);
  return (value === undefined ? {} : { [name]: value }) as { [Member in Name]?: number };
}
