import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Incident } from '@animal-store/log/incident';
import { ExportResultCode, getNumberFromEnv, getStringFromEnv, setGlobalErrorHandler } from '@opentelemetry/core';
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
import { releasedVersion } from '../../config/version.ts';
import type { Log } from '../../database/options.ts';

/** The service's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES has another. */
const name = 'animal-store';
/** The maximum number of links of a span: the maximum batch size. */
const linkCountLimit = 256;

/** Sends spans to a collector, as OpenTelemetry's standard variables say. */
export function openTracing(log: Log) {
  const version = releasedVersion();
  const losses = new Incident({
    onStart: (fields) => log.warn(fields, 'spans cannot be sent and are lost'),
    onEnd: (ms, batches) => log.info({ ms, batches }, 'spans are no longer lost'),
  });
  const exporter = new OTLPTraceExporter();
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) losses.recovered();
      done(result);
    });
  // The exporter and the resource read the standard variables themselves; the processor does not.
  const processor = new BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 5000,
    maxQueueSize: getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2048,
    maxExportBatchSize: getNumberFromEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512,
    exportTimeoutMillis: getNumberFromEnv('OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
  });
  const identity = {
    'service.name': name,
    'service.version': version,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
  };
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(identity))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerFromEnv(),
    spanLimits: { linkCountLimit },
    spanProcessors: [processor],
  });
  // The SDK reports each failed batch. Only the message is logged, because the error contains the collector's response.
  setGlobalErrorHandler((error) => {
    losses.occurred({ reason: error instanceof Error ? error.message || error.name : String(error) });
  });
  return { tracer: provider.getTracer(name, version), sendLastSpans: () => provider.shutdown() };
}

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
