import type { IncomingMessage } from 'node:http';
import { isAuthority } from './protocol.ts';

/**
 * Removes what a proxy passed on unchecked, before Fastify makes addresses of it: an authority, and http or https, is all
 * that may be in them. Only `X-Forwarded-*` counts, since that is what proxies write: RFC 7239's `Forwarded` would be the
 * client's own word behind most of them.
 *
 * @returns the request's URL, unchanged: the signature is that of Fastify's `rewriteUrl`, which runs first of all.
 */
export function distrustForwarded({ headers, url = '/' }: IncomingMessage): string {
  if (!isAuthority(lastOf(headers['x-forwarded-host']))) delete headers['x-forwarded-host'];
  if (!/^https?$/i.test(lastOf(headers['x-forwarded-proto']))) delete headers['x-forwarded-proto'];
  return url;
}

/** Of several, Fastify takes the last. */
function lastOf(header: string | string[] | undefined): string {
  return `${header ?? ''}`.split(',').at(-1)?.trim() ?? '';
}
