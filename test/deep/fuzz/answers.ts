import { httpStatusOf } from '#engine/errors.js';
import { committed } from '../../support/contract.ts';
import type { HttpRequest, HttpResponse } from '../../support/http.ts';

const openPaths =
  /^\/(?:|favicon\.ico|robots\.txt|livez|readyz|docs\b.*|schema\.graphql|v1\/openapi\.json)(?:[?#]|$)/;

/** @throws Error unless the contract allows the response for the request */
export function assertRestAnswer(
  { path: target, ...others }: HttpRequest,
  response: HttpResponse,
): void {
  const { status, text } = response;
  // RFC 9112 section 3.2.2: the absolute form names the same resource.
  const request = { ...others, path: target.replace(/^http:\/\/[^/]*/, '') };
  if (openPaths.test(request.path) && status < 400) return;
  // Bytes that are no HTTP request have no operation that documents the
  // response.
  const isBroken =
    status === 400 &&
    /well-formed HTTP|one Host header|Content-Length/.test(text);
  committed.assert(isBroken ? { ...request, path: '/' } : request, response);
  // The contract allows pages for browsers.
  if (status < 400 || text === '' || text.startsWith('<')) return;
  const { code } = JSON.parse(text);
  if (httpStatusOf[code as keyof typeof httpStatusOf] !== status)
    throw new Error(`${code} is not the code of ${status}`);
  if (status >= 500 && code !== 'NOT_IMPLEMENTED')
    throw new Error(`${status} ${text}`);
}

// Apollo's own codes. After the last two its clients send the whole document.
const apolloCodes = {
  GRAPHQL_PARSE_FAILED: 400,
  GRAPHQL_VALIDATION_FAILED: 400,
  PERSISTED_QUERY_NOT_FOUND: 400,
  PERSISTED_QUERY_NOT_SUPPORTED: 400,
};
const codes: Record<string, number> = { ...httpStatusOf, ...apolloCodes };

/**
 * @returns `data` or the codes of the errors. @throws Error unless the response
 *   is well-formed, with known codes
 */
export function assertGraphQLAnswer({
  status,
  headers,
  text,
}: HttpResponse): string[] {
  const refuse = (reason: string) =>
    new Error(`${reason}: ${status} ${text.slice(0, 500)}`);
  if (
    !/^application\/(?:json|graphql-response\+json)\b/.test(
      headers['content-type'] ?? '',
    )
  )
    throw refuse('not JSON');
  const { data, errors, ...others } = JSON.parse(text);
  if (Object.keys(others).length > 0) throw refuse('unknown members');
  if (status >= 500) throw refuse('failed');
  if (errors === undefined) {
    if (status !== 200 || typeof data !== 'object' || data === null)
      throw refuse('neither data nor errors');
    return ['data'];
  }
  if (!Array.isArray(errors) || errors.length === 0)
    throw refuse('errors must be a list that is not empty');
  for (const { message, locations, path, extensions, ...more } of errors) {
    if (typeof message !== 'string' || Object.keys(more).length > 0)
      throw refuse('not a GraphQL error');
    if (locations !== undefined && !Array.isArray(locations))
      throw refuse('locations must be a list');
    if (path !== undefined && !Array.isArray(path))
      throw refuse('path must be a list');
    const { code } = extensions ?? {};
    if (!(code in codes) || codes[code] !== extensions.status)
      throw refuse('the code is unknown');
    if (extensions.status >= 500) throw refuse('failed');
  }
  return errors.map(({ extensions }) => extensions.code);
}
