import type { FastifyInstance, onResponseHookHandler, onSendHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { origin } from '../../api/rest/pages.ts';
import type { Deprecation } from './deprecation.ts';
import type { DeprecationUsage } from './usage.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Marks the operation, by its operationId, as deprecated; `successor` is the path of its replacement. */
    deprecation?: Deprecation & { operation: string; successor: string };
  }
}

const signals = {
  Deprecation: { type: 'string', description: 'RFC 9745: since when this operation is deprecated.' },
  Sunset: { type: 'string', description: 'RFC 8594: when this operation will be removed.' },
  Link: { type: 'string', description: 'What comes in its place, with `rel="successor-version"`.' },
};

/**
 * Adds to every response of a deprecated operation, failures included: `Deprecation` (RFC 9745 section 2), `Sunset`
 * (RFC 8594 section 3) and a link to the successor (RFC 5829 section 3.3). Also documents these headers and counts the
 * calls.
 */
export const deprecations = fastifyPlugin<{ usage: DeprecationUsage }>(
  async (app: FastifyInstance, { usage }) => {
    app.addHook('onRoute', (route) => {
      const { schema, config: { deprecation } = {} } = route;
      if (!deprecation) return;
      const { operation, since, removal, successor } = deprecation;
      const dates = { deprecation: `@${since.getTime() / 1000}`, sunset: removal.toUTCString() };
      // Responses to rejected requests come from the route as well, so they pass this hook, too.
      const announce: onSendHookHandler = (request, reply, _payload, done) => {
        const links = [
          reply.getHeader('link') ?? [],
          `<${origin(request)}${successor}>; rel="successor-version"`,
        ].flat();
        reply.headers(dates).header('link', links.join(', '));
        done();
      };
      const count: onResponseHookHandler = ({ caller }, _reply, done) => {
        if (caller) usage.called(caller, operation, removal);
        done();
      };
      route.onSend = [route.onSend ?? [], announce].flat();
      route.onResponse = [route.onResponse ?? [], count].flat();
      // The day as tools for OpenAPI read it (`x-sunset` of oasdiff).
      const marks = { deprecated: true, 'x-sunset': removal.toISOString().slice(0, 10) };
      if (schema?.response) route.schema = { ...schema, ...marks, response: withSignals(schema.response) };
    });
  },
  { name: 'deprecations', dependencies: ['documented-failures'] },
);

function withSignals(responses: unknown) {
  const signalled = Object.entries(responses as Record<string, { headers?: object }>).map(([status, response]) => [
    status,
    { ...response, headers: { ...response.headers, ...signals } },
  ]);
  return Object.fromEntries(signalled);
}
