import type { onSendHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { origin } from './links.ts';

/** An operation that will go away: since when it is deprecated, when it goes, and what comes in its place. */
export interface Deprecation {
  since: Date;
  removal: Date;
  /** Where to go instead, for people. */
  replacement: string;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Marks the operation, by its operationId, as deprecated; `successor` is the path of what replaces it. */
    deprecation?: Deprecation & { operation: string; successor: string };
  }
}

/** The day, as in `5 December 2030`. */
export function dayOf(date: Date): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(date);
}

/**
 * Says on every response of a deprecated operation, failures included, that it is: `Deprecation` (RFC 9745 section 2),
 * `Sunset` (RFC 8594 section 3) and a link to the successor (RFC 5829 section 3.3). Register it before the routes.
 */
export const deprecationHeaders = fastifyPlugin(async (app) => {
  app.addHook('onRoute', (route) => {
    const { deprecation } = route.config ?? {};
    if (!deprecation) return;
    const { since, removal, successor } = deprecation;
    const dates = { deprecation: `@${since.getTime() / 1000}`, sunset: removal.toUTCString() };
    // Replies to refused requests are sent by the route, too: they pass this hook.
    const announce: onSendHookHandler = (request, reply, _payload, done) => {
      reply.headers(dates).header('link', `<${origin(request)}${successor}>; rel="successor-version"`);
      done();
    };
    route.onSend = [route.onSend ?? [], announce].flat();
  });
});
