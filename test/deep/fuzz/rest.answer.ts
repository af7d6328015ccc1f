import { httpStatusOf } from '../../../src/errors.ts';
import { committed } from '../../support/contract.ts';
import type { HttpRequest, HttpResponse } from '../../support/http.ts';

const openPaths = /^\/(?:|favicon\.ico|robots\.txt|livez|readyz|docs\b.*|schema\.graphql|v1\/openapi\.json)(?:[?#]|$)/;

/** @throws Error unless it is what the contract says of this request */
export function assertRestAnswer({ path: target, ...others }: HttpRequest, response: HttpResponse): void {
  const { status, text } = response;
  // RFC 9112 section 3.2.2: the absolute form names the same resource.
  const request = { ...others, path: target.replace(/^http:\/\/[^/]*/, '') };
  if (openPaths.test(request.path) && status < 400) return;
  // What is no HTTP request to begin with has no operation that could document it.
  const isBroken = status === 400 && /well-formed HTTP|one Host header|Content-Length/.test(text);
  committed.assert(isBroken ? { ...request, path: '/' } : request, response);
  if (status < 400 || text === '') return;
  const { code } = JSON.parse(text);
  if (httpStatusOf[code as keyof typeof httpStatusOf] !== status)
    throw new Error(`${code} is not the word for ${status}`);
  if (status >= 500 && code !== 'NOT_IMPLEMENTED') throw new Error(`${status} ${text}`);
}
