import type { FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';

/** In characters. Thousands of types would take tens of milliseconds to read, and no key is needed to send them. */
const longestHeader = 512;

/**
 * Which media types a client accepts (RFC 9110 section 12.5.1), best first. A header that is longer than any client's is
 * taken for none, as which all are accepted.
 */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
): Type[] {
  const { accept = '' } = request.headers;
  return accept.length > longestHeader ? [...offered] : (new Negotiator(request).mediaTypes([...offered]) as Type[]);
}
