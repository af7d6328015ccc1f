import { httpStatusOf } from '../../errors.ts';

/** In place of whatever is in no closed list. */
export const other = 'other';

export const knownMethods = ['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE'];

/** All error codes; the last are Apollo Server's own. */
const codes = new Set([
  ...Object.keys(httpStatusOf),
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'PERSISTED_QUERY_NOT_FOUND',
  'PERSISTED_QUERY_NOT_SUPPORTED',
]);

/** @param code undefined when there was no error */
export function codeWord(code: unknown): string {
  if (code === undefined) return 'OK';
  return codes.has(code as string) ? (code as string) : other;
}

/** A route as the interface writes it: `/v1/pets/:petId`, without the expression that its parameter has to match. */
export function routeOf(url: string): string {
  return url.replace(/\(.*?\)(?=\/|$)/g, '');
}
