import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import { type EventLog, Incident } from '@animal-store/log/incident';
import { Redactor } from '@animal-store/log/redactor';
import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  ExportResultCode,
  getNumberFromEnv,
  getStringFromEnv,
  setGlobalErrorHandler,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { secretsInText } from '../../access/keys/secret.ts';
import type { Call } from '../../call.ts';
import type { Config } from '../../config/config.ts';
import type { DatabaseObserver } from '../../database/database.ts';
import { type ErrorCode, httpStatusOf } from '../../errors.ts';
import type { Parts } from '../../feature.ts';
import {
  codeLabel,
  methodLabel,
  other,
  routeLabel,
} from '../../runtime/labels.ts';
import { addressOf } from '../../runtime/log/request-log.ts';
import type {
  OperationObserver,
  RequestObserver,
} from '../../runtime/observers.ts';

/** The spans of a request. */
interface Spans {
  readonly request: Span;
  operation?: Span;
}

/** The spans of the calls that are traced. */
type SpansByCall = WeakMap<Call, Spans>;

export function startTracing(config: Config, log: EventLog): Parts {
  const { tracer, sendLastSpans } = openTracing(config, log);
  const redactor = new Redactor(secretsInText, config.keys.bootstrapKey);
  const spans: SpansByCall = new WeakMap();
  return {
    observers: {
      request: requestSpans(tracer, spans, redactor),
      operation: operationSpans(tracer, spans),
      database: databaseSpans(tracer, spans),
    },
    close: sendLastSpans,
  };
}

/** The maximum number of links of a span: the maximum batch size. */
const linkCountLimit = 256;

/**
 * Sends spans to a collector, as OpenTelemetry's standard variables say.
 *
 * @param service its name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES
 *   has another
 */
export function openTracing(
  { name, version }: Pick<Config, 'name' | 'version'>,
  log: EventLog,
) {
  const losses = new Incident(log, {
    begins: 'spans cannot be sent and are lost',
    ends: 'spans are no longer lost',
    count: 'batches',
  });
  const exporter = new OTLPTraceExporter();
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) losses.recovered();
      done(result);
    });
  // The exporter and the resource read the standard variables themselves; the
  // processor does not.
  const processor = new BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 5000,
    maxQueueSize: getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2048,
    maxExportBatchSize:
      getNumberFromEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512,
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
  // The SDK reports each failed batch. Only the message is logged, because the
  // error contains the collector's response.
  setGlobalErrorHandler((error) => {
    const { message, name } = error as Error;
    losses.occurred({ reason: message || name });
  });
  return {
    tracer: provider.getTracer(name, version),
    sendLastSpans: () => provider.shutdown(),
  };
}

/** The sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name. */
export function samplerFromEnv() {
  const name =
    getStringFromEnv('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  let root: Sampler = new AlwaysOnSampler();
  if (name.endsWith('always_off')) root = new AlwaysOffSampler();
  if (name.endsWith('traceidratio')) {
    const share = getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1;
    root = new TraceIdRatioBasedSampler(share);
  }
  const isOfParent = name.startsWith('parentbased_');
  return isOfParent ? new ParentBasedSampler({ root }) : root;
}

const propagator = new W3CTraceContextPropagator();
/**
 * Ignores `tracestate`, whose content the client chooses and each span would
 * carry.
 */
const onlyTraceparent = {
  get: (headers: IncomingHttpHeaders, name: string) =>
    name === 'traceparent' ? headers[name] : undefined,
  keys: () => ['traceparent'],
};

/**
 * One SERVER span for each request (OpenTelemetry's conventions for HTTP spans,
 * v1.44.0).
 */
function requestSpans(
  tracer: Tracer,
  spans: SpansByCall,
  redactor: Redactor,
): RequestObserver {
  return {
    began(request) {
      const method = methodLabel(request.method);
      // Omits query, headers and host, where a client may send anything, even a
      // key.
      const attributes: Attributes = {
        'http.request.method': method,
        // A proxy may pass on any other value.
        'url.scheme': request.protocol === 'https' ? 'https' : 'http',
        'url.path': redactor.redactPath(request.originalUrl),
        'network.protocol.version': request.raw.httpVersion,
      };
      let name = method;
      if (method === other) {
        attributes['http.request.method'] = '_OTHER';
        name = 'HTTP';
      }
      const route = routeLabel(request);
      if (route !== other) {
        attributes['http.route'] = route;
        name += ` ${route}`;
      }
      const address = addressOf(request);
      if (address) attributes['client.address'] = address;
      const { headers, call } = request;
      let context = ROOT_CONTEXT;
      if (headers.traceparent)
        context = propagator.extract(context, headers, onlyTraceparent);
      const options = { kind: SpanKind.SERVER, attributes };
      const span = tracer.startSpan(name, options, context);
      spans.set(call, { request: span });
      call.traceId = span.spanContext().traceId;
    },
    ended({ call }, reply, { isAnswered }) {
      const span = spans.get(call)?.request;
      if (!span) return;
      if (isAnswered)
        span.setAttribute('http.response.status_code', reply.statusCode);
      markFailed(span, isAnswered ? call.code : 'aborted');
      span.end();
    },
  };
}

/** One INTERNAL span for each GraphQL operation. */
function operationSpans(tracer: Tracer, spans: SpansByCall): OperationObserver {
  return {
    began({ type, name, isTrusted }, call) {
      const served = spans.get(call);
      if (!served) return;
      const attributes: Attributes = { 'graphql.operation.type': type };
      // Clients could send unlimited names.
      if (isTrusted && name) attributes['graphql.operation.name'] = name;
      const context = childOf(served.request);
      served.operation = tracer.startSpan(type, { attributes }, context);
    },
    ended(_operation, call, errors) {
      const span = spans.get(call)?.operation;
      if (errors && span) markFailed(span, errors[0]?.extensions?.code);
      span?.end();
    },
  };
}

/**
 * One CLIENT span for each round trip that serves a sampled request, as a child
 * of that request. When it serves several, the span is a child of the first,
 * and links connect it with all of them in both directions.
 */
function databaseSpans(tracer: Tracer, spans: SpansByCall): DatabaseObserver {
  return {
    sent({ collection, operation, size, calls }) {
      const served = new Set<Spans>();
      for (const call of calls) {
        const one = spans.get(call.origin);
        if (one?.request.isRecording()) served.add(one);
      }
      const [first] = served;
      if (!first) return () => undefined;
      const attributes: Attributes = {
        'db.system.name': 'postgresql',
        'db.collection.name': collection,
        'db.operation.name': operation,
      };
      // The conventions omit a batch size of 1.
      if (size > 1) attributes['db.operation.batch.size'] = size;
      const span = tracer.startSpan(
        `${operation} ${collection}`,
        { kind: SpanKind.CLIENT, attributes },
        childOf(first.operation ?? first.request),
      );
      if (served.size > 1) {
        for (const { request } of served) {
          span.addLink({ context: request.spanContext() });
          request.addLink({ context: span.spanContext() });
        }
      }
      return (failure) => {
        if (failure) {
          const { state, type } = failure;
          if (state) span.setAttribute('db.response.status_code', state);
          // Omits the message, which may quote data.
          span.setAttribute('error.type', state ?? type);
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      };
    },
  };
}

function childOf(span: Span) {
  return trace.setSpan(ROOT_CONTEXT, span);
}

/**
 * Sets the error code. The status is ERROR only for codes that mean 5xx, even
 * if GraphQL answers 200.
 */
function markFailed(span: Span, code: unknown) {
  if (code === undefined) return;
  span.setAttribute('error.type', code === 'aborted' ? code : codeLabel(code));
  if (httpStatusOf[code as ErrorCode] >= 500)
    span.setStatus({ code: SpanStatusCode.ERROR });
}
