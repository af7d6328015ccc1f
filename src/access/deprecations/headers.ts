import type { FastifyRequest, onResponseHookHandler, onSendHookHandler, RouteOptions } from 'fastify';
import type { Deprecation } from './deprecation.ts';
import type { DeprecationUsage } from './usage.ts';

/** A deprecated operation of REST, by its operationId; `successor` is the path of its replacement. */
type DeprecatedRoute = Deprecation & { operation: string; successor: string };

declare module 'fastify' {
  interface FastifyContextConfig {
    deprecation?: DeprecatedRoute;
  }
}

/**
 * Adds to every response of a deprecated operation, failures included: `Deprecation` (RFC 9745 section 2), `Sunset`
 * (RFC 8594 section 3) and a link to the successor (RFC 5829 section 3.3). Also counts the calls.
 *
 * @param originOf the service's address as the client sees it
 */
export function deprecationHooks(
  { config: { deprecation } = {} }: RouteOptions,
  usage: DeprecationUsage,
  originOf: (request: FastifyRequest) => string,
): { onSend?: onSendHookHandler; onResponse?: onResponseHookHandler } {
  if (!deprecation) return {};
  const { operation, since, removal, successor } = deprecation;
  const dates = { deprecation: `@${since.getTime() / 1000}`, sunset: removal.toUTCString() };
  return {
    // Responses to rejected requests come from the route as well, so they pass this hook, too.
    onSend(request, reply, _payload, done) {
      const link = `<${originOf(request)}${successor}>; rel="successor-version"`;
      reply.headers(dates).header('link', [reply.getHeader('link') ?? [], link].flat().join(', '));
      done();
    },
    onResponse({ caller }, _reply, done) {
      if (caller) usage.called(caller, operation, removal);
      done();
    },
  };
}

/** What a deprecated operation adds to its contract. */
export function deprecationDescription({ removal }: DeprecatedRoute): DeprecationDescription {
  return {
    headers: {
      Deprecation: { type: 'string', description: 'RFC 9745: since when this operation is deprecated.' },
      Sunset: { type: 'string', description: 'RFC 8594: when this operation will be removed.' },
      Link: { type: 'string', description: 'What comes in its place, with `rel="successor-version"`.' },
    },
    deprecated: true,
    // The day as tools for OpenAPI read it (`x-sunset` of oasdiff).
    'x-sunset': removal.toISOString().slice(0, 10),
  };
}

export interface DeprecationDescription {
  /** Of every response. */
  headers: Record<string, object>;
  deprecated: true;
  'x-sunset': string;
}
