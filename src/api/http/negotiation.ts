import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';

/** Adds a request header to `Vary` (RFC 9110 section 12.5.5). */
export function varyBy(reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary');
  reply.header('vary', others ? `${others}, ${name}` : name);
}

/** Characters. Parsing thousands of types takes tens of milliseconds, before authentication. */
const longestAccept = 512;

/** The `Accept` of a client. An excessively long one is ignored, so all types are acceptable. */
export function acceptOf({ headers: { accept } }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return accept && accept.length > longestAccept ? undefined : accept;
}

/** The media types that a client accepts (RFC 9110 section 12.5.1), best first. */
export function acceptedTypes<Type extends string>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Type[],
): Type[] {
  return new Negotiator({ headers: { accept: acceptOf(request) } }).mediaTypes([...offered]) as Type[];
}

/** Whether a client prefers HTML to JSON, as browsers do. */
export function prefersHtml(request: FastifyRequest): boolean {
  return acceptedTypes(request, ['application/json', 'text/html'])[0] === 'text/html';
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
