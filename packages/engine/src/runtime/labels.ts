import type { FastifyRequest } from 'fastify';
import { httpStatusOf } from '../errors.ts';

// The labels of metrics and spans.

/**
 * Replaces values outside a closed list, so that clients cannot create labels.
 */
export const other = 'other';

const methods = new Set([
  'GET',
  'POST',
  'HEAD',
  'OPTIONS',
  'PUT',
  'PATCH',
  'DELETE',
]);
/** All error codes; the last are Apollo Server's own. */
const codes = new Set([
  ...Object.keys(httpStatusOf),
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'PERSISTED_QUERY_NOT_FOUND',
]);

export function methodLabel(method: string) {
  return methods.has(method) ? method : other;
}

/** @param code undefined when there was no error */
export function codeLabel(code: unknown) {
  if (code === undefined) return 'OK';
  if (!codes.has(`${code}`)) return other;
  return `${code}`;
}

/** The route without the pattern of its parameter: `/v1/books/:bookId`. */
export function routeLabel({ is404, route: { url } }: FastifyRequest) {
  if (is404 || url === undefined || url === '*') return other;
  return url.replace(/\(.*?\)(?=\/|$)/g, '');
}
