import type { FastifyRequest } from 'fastify';

/** This request's address with one query parameter set, as the client sees it from outside. */
export function addressWith(request: FastifyRequest, parameter: string, value: bigint): string {
  const address = new URL(request.originalUrl, origin(request));
  address.searchParams.set(parameter, `${value}`);
  return address.href;
}

/** Scheme and authority that the client used; a proxy's word counts only when `TRUST_PROXY` trusts it. */
export function origin(request: FastifyRequest): string {
  const address = `${request.protocol}://${request.host}`;
  // Nothing that a client writes there may end the `<...>` of a link.
  return URL.canParse(address) ? new URL(address).origin : 'http://localhost';
}
