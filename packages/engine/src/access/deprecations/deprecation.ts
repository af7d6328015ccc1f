import type {
  FastifyRequest,
  onResponseHookHandler,
  onSendHookHandler,
  RouteOptions,
} from 'fastify';
import type { DeprecationUsage } from './usage.ts';

/**
 * A deprecated operation: its deprecation date, removal date and replacement.
 */
export interface Deprecation {
  since: Date;
  removal: Date;
  /** The replacement, for people. */
  replacement: string;
}

/** A deprecated route: its operationId, and the path of its replacement. */
type DeprecatedRoute = Deprecation & {
  operation: string;
  successor: string;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    deprecation?: DeprecatedRoute;
  }
}

const months =
  'January February March April May June July August September October November December'.split(
    ' ',
  );

/**
 * Formats the day, as in `5 December 2030`. `Intl` would add 8 MB to every
 * process.
 */
export function dayOf(date: Date) {
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/**
 * Adds to every response of a deprecated route, failures included:
 * `Deprecation` (RFC 9745 section 2), `Sunset` (RFC 8594 section 3) and a link
 * to the successor (RFC 5829 section 3.3). Counts the calls.
 *
 * @param origin the address of the service as the client sees it
 */
export function deprecationHooks(
  { config: { deprecation } = {} }: RouteOptions,
  usage: DeprecationUsage,
  origin: (request: FastifyRequest) => string,
): { onSend?: onSendHookHandler; onResponse?: onResponseHookHandler } {
  if (!deprecation) return {};
  const { operation, since, removal, successor } = deprecation;
  const dates = {
    deprecation: `@${since.getTime() / 1000}`,
    sunset: removal.toUTCString(),
  };
  return {
    // Rejections pass this hook, too, because Fastify rejects a request within
    // its route.
    onSend(request, reply, _payload, done) {
      const link = `<${origin(request)}${successor}>; rel="successor-version"`;
      const others = reply.getHeader('link');
      reply.headers(dates).header('link', others ? `${others}, ${link}` : link);
      done();
    },
    onResponse({ call: { caller } }, _reply, done) {
      if (caller) usage.called(caller, operation, removal);
      done();
    },
  };
}

/**
 * The `@Extensions` of a deprecated field's resolver: its calls are counted.
 * `deprecationReason` announces it.
 */
export interface DeprecatedField {
  deprecation: Deprecation;
}
