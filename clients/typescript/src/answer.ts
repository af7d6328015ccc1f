import { retryAfterOf } from './retry.ts';
import { type GraphQLFailure, StoreError, unexpected } from './store-error.ts';

/** A complete response. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/**
 * @throws StoreError UNEXPECTED_ANSWER when `read` fails, or `isIt` rejects the
 *   result
 */
export function readAs<T>(
  { status, text }: Answer,
  read: (text: string) => unknown,
  isIt: (it: unknown) => it is T,
): T {
  try {
    const value = read(text);
    if (isIt(value)) return value;
  } catch {}
  throw unexpected(
    'The answer is not the JSON that the service sends.',
    status,
  );
}

/**
 * The error of a response that is no success, from the service or from a proxy.
 */
export function failureOf(answer: Answer): StoreError {
  const { status, headers } = answer;
  const retryAfter = retryAfterOf(headers);
  const body = objectOf(answer.text);
  if (hasErrors(body)) return graphQLFailureOf(answer, body);
  if (typeof body?.code !== 'string')
    return unexpected(
      `The answer has the status ${status}.`,
      status,
      retryAfter,
    );
  return new StoreError(body.code, String(body.message ?? body.code), {
    status,
    retryAfter,
  });
}

/**
 * @returns `data` of a GraphQL response @throws StoreError when it has errors
 */
export function dataOf<Data>(answer: Answer): Data {
  const body = objectOf(answer.text);
  if (hasErrors(body) || !body || !('data' in body)) throw failureOf(answer);
  return body.data as Data;
}

interface Failed {
  errors: readonly [GraphQLFailure, ...GraphQLFailure[]];
  data?: unknown;
}

/** Checks the form, because a proxy may send anything. */
function hasErrors(body: object | undefined): body is Failed {
  const { errors } = (body ?? {}) as { errors?: unknown };
  return (
    Array.isArray(errors) &&
    errors.length > 0 &&
    errors.every((error) => typeof error?.message === 'string')
  );
}

function graphQLFailureOf(
  { status: httpStatus, headers }: Answer,
  { errors, data }: Failed,
): StoreError {
  const [{ message, extensions }] = errors;
  const {
    code = 'UNEXPECTED_ANSWER',
    status = httpStatus,
    retryAfter: told,
  } = extensions ?? {};
  const retryAfter =
    typeof told === 'number' && told >= 0 ? told : retryAfterOf(headers);
  return new StoreError(code, message, { status, retryAfter, errors, data });
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    return Object(JSON.parse(text));
  } catch {
    return undefined;
  }
}
