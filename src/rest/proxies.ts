import type { IncomingMessage } from 'node:http';
import parseForwarded from 'forwarded-parse';
import { isAuthority } from './protocol.ts';

/**
 * Fastify understands `X-Forwarded-*` only: the standard `Forwarded` (RFC 7239) is translated into it. Whether the
 * sender may be believed is decided afterwards, for both alike, by `TRUST_PROXY`.
 *
 * @returns the request's address, unchanged: the signature is that of Fastify's `rewriteUrl`, which runs first of all.
 */
export function understandForwarded({ headers, url = '/' }: IncomingMessage): string {
  if (headers.forwarded !== undefined) {
    const hops = parsed(headers.forwarded);
    headers['x-forwarded-for'] = hops.map((hop) => nodeOf(hop.for)).join(', ');
    const last = hops.at(-1);
    if (last?.proto) headers['x-forwarded-proto'] = last.proto;
    if (last?.host) headers['x-forwarded-host'] = last.host;
  }
  // A proxy may pass on what a client wrote: addresses are made of nothing but an authority and http or https.
  if (!isAuthority(lastOf(headers['x-forwarded-host']))) delete headers['x-forwarded-host'];
  if (!/^https?$/i.test(lastOf(headers['x-forwarded-proto']))) delete headers['x-forwarded-proto'];
  return url;
}

/** Of several, Fastify takes the last. */
function lastOf(header: string | string[] | undefined): string {
  return `${header ?? ''}`.split(',').at(-1)?.trim() ?? '';
}

function parsed(header: string): Array<Record<string, string>> {
  try {
    return parseForwarded(header);
  } catch {
    return [];
  }
}

/** `[2001:db8::1]:4711` -> `2001:db8::1`, `192.0.2.1:80` -> `192.0.2.1` (RFC 7239 section 6). */
function nodeOf(node = 'unknown'): string {
  return /^\[(.+)\](?::\w+)?$/.exec(node)?.[1] ?? node.replace(/^([\d.]+):\w+$/, '$1');
}
