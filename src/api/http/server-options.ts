import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import type { TObject } from 'typebox';
import { validator } from '../../validation/validator.ts';
import { answerMalformed } from './malformed.ts';

export interface ServerOptions {
  trustProxy: false | number | string[];
  /** Milliseconds to receive a complete request, and to keep an idle connection open. */
  requestTimeout: number;
  keepAliveTimeout: number;
  /** Bytes. */
  bodyLimit: number;
}

const maxHeaderSize = 16_384;
/** A path without a route. */
const unroutedPath = '//';
/** Requests with an undecodable path. */
const unreadable = new WeakSet<IncomingMessage>();

/** Fastify's options for the HTTP server: its limits, and the handling of malformed requests. */
export function serverOptions(options: ServerOptions): FastifyServerOptions {
  const { trustProxy, requestTimeout, keepAliveTimeout, bodyLimit } = options;
  return {
    bodyLimit,
    // On a slow machine a plugin takes more than the default of 10 s. A failed start is the supervisor's to notice.
    pluginTimeout: 0,
    requestTimeout,
    keepAliveTimeout,
    // Also limits clients that read their response slowly.
    connectionTimeout: Math.max(120_000, requestTimeout, keepAliveTimeout),
    // The router ignores the first character of a path, so it would treat `*` (RFC 9112 section 3.2.4) as `/`.
    rewriteUrl: (raw: IncomingMessage) =>
      raw.url === undefined || raw.url.startsWith('*') || unreadable.has(raw) ? unroutedPath : raw.url,
    // A function, because Fastify trusts no proxy when it gets their number: it could not validate the peer
    // (https://github.com/advisories/GHSA-3m5p-2c4r-xxw2).
    trustProxy: typeof trustProxy === 'number' ? (_address: string, hop: number) => hop < trustProxy : trustProxy,
    schemaController: { compilersFactory: { buildValidator: buildValidator as never } },
    // The longest path parameter is an int64; longer ones, up to the size of a header section, get 404.
    routerOptions: { maxParamLength: maxHeaderSize },
    http: {
      joinDuplicateHeaders: true,
      maxHeaderSize,
      requireHostHeader: false,
      // Limits clients that send their headers slowly.
      headersTimeout: Math.min(requestTimeout, 10_000),
      connectionsCheckingInterval: 1000,
    },
    // Requests that arrive on open connections while the service drains are still served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: answerMalformed,
    // An undecodable path would pass no hook, so it is routed like an unknown one.
    frameworkErrors: (_error: unknown, { raw, server }: FastifyRequest, reply: FastifyReply) => {
      unreadable.add(raw);
      server.routing(raw, reply.raw);
    },
  } as FastifyServerOptions;
}

/** Makes Fastify validate input with `validator`, so that a schema means the same as in OpenAPI. */
function buildValidator() {
  return ({ schema, httpPart }: { schema: TObject; httpPart?: string }) => {
    // Routes answer an invalid path parameter with 404, and headers are checked where they are read.
    if (httpPart === 'params' || httpPart === 'headers') return () => true;
    const check = validator(schema, { isLenient: httpPart !== 'body' });
    return (input: unknown) => {
      try {
        return { value: check(input) };
      } catch (error) {
        return { error };
      }
    };
  };
}
