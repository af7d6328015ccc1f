import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';

/** The headers of every answer: security, and who may keep it. And what requests say about themselves. */

const common = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** For JSON: the browser must not run, frame or sniff it; nor keep it, unless `caching` says so. */
export const dataHeaders = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cache-control': 'no-store',
  ...common,
};

/** For pages, which may load what their policy says, and may not be framed. */
export const pageHeaders = (policy: string) => ({
  ...common,
  'content-security-policy': `${policy};frame-ancestors 'none'`,
  'origin-agent-cluster': '?1',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
});

/** Names a header of the request by which the answer was chosen (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary');
  reply.header('vary', others ? `${others}, ${name}` : name);
}

/** In characters. To read thousands of types takes tens of milliseconds, and needs no key. */
const longestAccept = 512;

/**
 * The media types that a client accepts (RFC 9110 section 12.5.1), best first. A header that is longer than any client's
 * is ignored: then all are accepted.
 */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
): Type[] {
  const { accept = '' } = request.headers;
  return accept.length > longestAccept ? [...offered] : (new Negotiator(request).mediaTypes([...offered]) as Type[]);
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
