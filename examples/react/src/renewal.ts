import {
  ApolloLink,
  CombinedGraphQLErrors,
  Observable,
  ServerError,
} from '@apollo/client';
import { PROTOCOL_ERRORS_SYMBOL } from '@apollo/client/errors';
import { from, map, retry, throwError } from 'rxjs';

/** How soon (ms) after a renewal a refusal is final. */
const soon = 1000;

/**
 * Renews the token when the service refuses it, and sends the operation again.
 * A live list goes on behind the last animal that it has shown.
 */
export function renewal(renew: () => Promise<void>): ApolloLink {
  return new ApolloLink((operation, forward) => {
    let renewedAt = Number.NEGATIVE_INFINITY;
    const attempt = new Observable<ApolloLink.Result>((observer) =>
      forward(operation).subscribe(observer),
    );
    return attempt.pipe(
      map((result) => {
        if (isRefused(result))
          throw new CombinedGraphQLErrors(result, errorsIn(result));
        const { id } = (result.data?.petAdded ?? {}) as { id?: string };
        if (id) operation.variables.after = id;
        return result;
      }),
      retry({
        delay(error) {
          if (!isRefused(error) || performance.now() - renewedAt < soon)
            return throwError(() => error);
          return from(renew().then(() => (renewedAt = performance.now())));
        },
      }),
    );
  });
}

function isRefused(answer: unknown): boolean {
  if (ServerError.is(answer)) return answer.statusCode === 401;
  return errorsIn(answer).some(
    ({ extensions }) => extensions?.code === 'UNAUTHENTICATED',
  );
}

/**
 * The errors of a result, and those with which the service ends a live list.
 */
function errorsIn(
  answer: unknown,
): ReadonlyArray<{ message: string; extensions?: Record<string, unknown> }> {
  const { errors = [], extensions } = answer as ApolloLink.Result;
  const ended = extensions?.[PROTOCOL_ERRORS_SYMBOL as never] as
    | { errors: [] }
    | undefined;
  return [...errors, ...(ended?.errors ?? [])];
}
