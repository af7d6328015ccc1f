import type { FastifyRequest } from 'fastify';
import type { Int64 } from '../int64.ts';

/** This request's address with one query parameter set, as the client sees it from outside. */
export function addressWith(request: FastifyRequest, parameter: string, value: Int64): string {
  const [, path = '', query = ''] = target.exec(request.originalUrl) ?? [];
  // Nothing that a client writes there may end the `<...>` of a link.
  return `${origin(request)}${path}?${queryWith(query, parameter, value)}`.replace(/[<>"]/g, encodeURIComponent);
}

// Of an address in absolute form (RFC 9112 section 3.2.2) the path. The router takes `#` for `?`.
const target = /^(?:https?:\/\/[^/?#]*)?([^?#]*)[?#]?(.*)$/is;

/** The other parameters stay as the client wrote them. */
function queryWith(query: string, parameter: string, value: Int64): string {
  const others = query.split('&').filter((part) => part !== '' && nameOf(part) !== parameter);
  return [...others, `${parameter}=${value}`].join('&');
}

function nameOf(part: string): string {
  const name = part.split('=', 1)[0] ?? '';
  return name.includes('%') ? ([...new URLSearchParams(`${name}=`).keys()][0] ?? '') : name;
}

const authority = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Scheme, authority and, behind a proxy that strips one, the prefix of the path, as the client used them. A proxy's word
 * counts only when `TRUST_PROXY` trusts it.
 */
export function origin(request: FastifyRequest): string {
  const { protocol, host } = request;
  return `${protocol}://${authority.test(host) ? host : 'localhost'}${prefix(request)}`;
}

function prefix({ ips, headers }: FastifyRequest): string {
  // Fastify gives more than the socket's own address only when it trusts that address.
  const given = ips && ips.length > 1 ? headers['x-forwarded-prefix'] : undefined;
  return typeof given === 'string' && /^(?:\/[\w.~-]+)+$/.test(given) ? given : '';
}
