import type { FastifyReply } from 'fastify';

/** Headers of every answer: security, and who may keep it. */

const common = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** For JSON: the browser must not run, frame or sniff it; nor keep it, unless `representations` says so. */
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
