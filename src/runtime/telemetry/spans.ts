import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestTrace } from '../../deadline.ts';
import { type ErrorCode, httpStatusOf } from '../../errors.ts';
import type { Redactor } from '../log/redact.ts';
import { addressOf } from '../log/request-log.ts';
import { codeLabel, methodLabel, other, routeLabel } from './labels.ts';
import type {
  DatabaseObserver,
  ObservedCall,
  ObservedOperation,
  OperationObserver,
  RequestEnd,
  RequestObserver,
  SentBatch,
} from './observers.ts';
import type { Tracing } from './telemetry.ts';

/** One SERVER span for each request (OpenTelemetry's conventions for HTTP spans, v1.44.0). */
export function requestSpans({ tracer, extract }: Tracing, redactor: Redactor): RequestObserver {
  return {
    began(request: FastifyRequest, call: ObservedCall) {
      const { headers, method, protocol } = request;
      const route = routeLabel(request);
      const label = methodLabel(method);
      // No query, no header, no host: a client may send anything there, a key too.
      const attributes: Attributes = {
        'http.request.method': label === other ? '_OTHER' : label,
        'url.scheme': protocol,
        'url.path': redactor.redactPath(request.originalUrl),
        'network.protocol.version': request.raw.httpVersion,
      };
      const address = addressOf(request);
      if (address) attributes['client.address'] = address;
      if (route !== other) attributes['http.route'] = route;
      const name = `${label === other ? 'HTTP' : label}${route === other ? '' : ` ${route}`}`;
      const context = headers.traceparent ? extract(headers) : ROOT_CONTEXT;
      call.trace = { request: tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, context) };
    },
    ended(_request: FastifyRequest, reply: FastifyReply, { call, isAnswered }: RequestEnd) {
      const span = call.trace?.request;
      if (!span) return;
      if (isAnswered) span.setAttribute('http.response.status_code', reply.statusCode);
      fail(span, isAnswered ? call.code : 'aborted');
      span.end();
    },
  };
}

/** One INTERNAL span for each GraphQL operation. @param isTrusted whether names of operations are the operator's own */
export function operationSpans({ tracer }: Tracing, isTrusted: boolean): OperationObserver {
  return {
    began({ type, name, call }: ObservedOperation) {
      if (!call.trace) return;
      const attributes: Attributes = { 'graphql.operation.type': type };
      // Any client can send as many names as it likes.
      if (isTrusted && name) attributes['graphql.operation.name'] = name;
      call.trace.operation = tracer.startSpan(type, { attributes }, within(call.trace.request));
    },
    ended({ call }: ObservedOperation, errors) {
      const span = call.trace?.operation;
      if (!span) return;
      if (errors) fail(span, errors[0]?.extensions?.code);
      span.end();
    },
  };
}

/**
 * One CLIENT span for each round trip that serves a traced request, as its child. A round trip that serves several is
 * the child of the first, whose sampling it follows. It has a link to each request, and each request has one to it.
 */
export function databaseSpans({ tracer }: Tracing): DatabaseObserver {
  return {
    sent({ collection, operation, size, deadlines }: SentBatch) {
      const served = new Set<RequestTrace>();
      for (const { trace: one } of deadlines) if (one && isSampled(one.request)) served.add(one);
      const [first] = served;
      if (!first) return ignore;
      const attributes: Attributes = {
        'db.system.name': 'postgresql',
        'db.collection.name': collection,
        'db.operation.name': operation,
      };
      // The conventions leave it out where there is only one.
      if (size > 1) attributes['db.operation.batch.size'] = size;
      const isShared = served.size > 1;
      const links = isShared ? [...served].map(({ request }) => ({ context: request.spanContext() })) : [];
      const context = within(first.operation ?? first.request);
      const options = { kind: SpanKind.CLIENT, attributes, links };
      const span = tracer.startSpan(`${operation} ${collection}`, options, context);
      if (isShared) for (const { request } of served) request.addLink({ context: span.spanContext() });
      return (failure) => {
        if (failure !== undefined) {
          const { state, type } = failure;
          if (state) span.setAttribute('db.response.status_code', state);
          // Without the message, which may quote data.
          span.setAttribute('error.type', state ?? type).setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      };
    },
  };
}

const ignore = () => undefined;

function within(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span);
}

function isSampled(span: Span): boolean {
  return (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Adds our error code. The status is an error only for a code that stands for 5xx, also where GraphQL answers 200. */
function fail(span: Span, code: unknown): void {
  if (code === undefined) return;
  span.setAttribute('error.type', code === 'aborted' ? code : codeLabel(code));
  if (httpStatusOf[code as ErrorCode] >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}
