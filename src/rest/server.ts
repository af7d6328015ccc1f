import type { FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import type { Config } from '../config.ts';
import { authenticate, type BearerOptions } from '../keys/bearer.ts';
import { answerBrokenRequest, closeIfUnread, sendError } from './error-handler.ts';
import { distrustForwarded } from './proxies.ts';
import { RequestCall, type RequestCallOptions } from './request-call.ts';
import { forData, securityHeaders } from './security-headers.ts';

const maxHeaderSize = 16_384;

/** Fastify's options for the HTTP server: limits, and what it does with requests that never become one. */
export function serverOptions(
  http: Config['http'],
  call: RequestCallOptions,
  guard: BearerOptions,
): FastifyServerOptions {
  const headersOfData = securityHeaders(forData);
  return {
    bodyLimit: http.bodyLimit,
    requestTimeout: http.requestTimeout,
    keepAliveTimeout: http.keepAliveTimeout,
    // A client that reads its answer slowly holds a connection, too.
    connectionTimeout: Math.max(120_000, http.requestTimeout, http.keepAliveTimeout),
    ...(http.trustProxy === false ? {} : { trustProxy: trusted(http.trustProxy), rewriteUrl: distrustForwarded }),
    // Schemas document requests and serialise responses; what is valid is judged by the services, once for both faces.
    schemaController: { compilersFactory: { buildValidator: anythingGoes as never } },
    // The longest path parameter is an int64; longer ones, up to what a header section holds, are not found.
    routerOptions: { maxParamLength: maxHeaderSize },
    http: {
      joinDuplicateHeaders: true,
      maxHeaderSize,
      // Node would answer a missing Host without a body; `protocol` refuses it.
      requireHostHeader: false,
      // A client that sends its headers slowly holds a connection; this is how long.
      headersTimeout: Math.min(http.requestTimeout, 10_000),
      connectionsCheckingInterval: 1000,
    },
    // Requests that still arrive on open connections while the service drains are answered.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerBrokenRequest,
    // A path that cannot be decoded meets no hook; what hooks do is done here. Authentication comes first, too.
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      reply.header('x-request-id', request.id).headers(headersOfData);
      request.call = new RequestCall(request.raw, reply.raw, call);
      closeIfUnread(request, reply);
      void authenticate(guard, request)
        .then(
          () => error,
          (refusal: unknown) => refusal,
        )
        .then((failure) => sendError(failure, request, reply));
    },
  } as FastifyServerOptions;
}

/** A number of hops as a function: Fastify trusts nobody when it is given the number (it cannot know who is there). */
function trusted(proxies: number | string[]): FastifyServerOptions['trustProxy'] {
  return typeof proxies === 'number' ? (_address: string, hop: number) => hop < proxies : proxies;
}

const anythingGoes = () => () => () => true;
