import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import {
  getNumberFromEnv,
  getStringFromEnv,
  setGlobalErrorHandler,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { Incident } from '../log/incident.ts';
import { withTimeout } from '../with-timeout.ts';
import type { TelemetryOptions, Tracing } from './telemetry.ts';

/** The largest batch has as many inputs. */
const maxLinks = 256;

/** OpenTelemetry's provider. The exporter and the resource read their standard variables themselves. */
export function openTracing({ version, log }: Pick<TelemetryOptions, 'version' | 'log'>): Tracing {
  const scheduledDelayMillis = getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 5000;
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(identity(version)))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerFromEnv(),
    spanLimits: { linkCountLimit: maxLinks },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        scheduledDelayMillis,
        maxQueueSize: getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2048,
        maxExportBatchSize: getNumberFromEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512,
        exportTimeoutMillis: getNumberFromEnv('OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
      }),
    ],
  });
  const timeout = getNumberFromEnv('OTEL_EXPORTER_OTLP_TIMEOUT') ?? 10_000;
  const losses = new Incident(
    {
      onStart: (fields) => log.warn(fields, 'spans cannot be sent, and are lost'),
      onEnd: (ms, batches) => log.info({ ms, batches }, 'spans are no longer lost'),
    },
    2 * (scheduledDelayMillis + timeout),
  );
  // The SDK reports each batch. Only the reason is logged, because the error holds the collector's answer.
  setGlobalErrorHandler((error) => {
    losses.occurred({ reason: error instanceof Error ? error.message || error.name : String(error) });
    losses.recovered();
  });
  const propagator = new W3CTraceContextPropagator();
  return {
    tracer: provider.getTracer('animal-store', version),
    extract: (headers) => propagator.extract(ROOT_CONTEXT, headers, onlyTraceparent),
    close: (milliseconds) => withTimeout(milliseconds, provider.shutdown(), late).catch(() => undefined),
  };
}

const late = () => new Error('The collector does not answer.');

function identity(version: string) {
  return {
    'service.name': 'animal-store',
    'service.version': version,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
  };
}

/** The client chooses the content of `tracestate`, which would be sent with each span: it is not read. */
const onlyTraceparent = {
  get: (headers: IncomingHttpHeaders, name: string) => (name === 'traceparent' ? headers[name] : undefined),
  keys: () => ['traceparent'],
};

/** The sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name. */
export function samplerFromEnv(): Sampler {
  const name = getStringFromEnv('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const root = name.endsWith('always_off')
    ? new AlwaysOffSampler()
    : name.endsWith('traceidratio')
      ? new TraceIdRatioBasedSampler(getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1)
      : new AlwaysOnSampler();
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}
