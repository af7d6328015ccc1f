import { CombinedGraphQLErrors } from '@apollo/client';

/**
 * Shows the service's error with its code, or that the service could not be
 * reached.
 */
export function Failure({ error }: { error: Error | undefined }) {
  if (!error) return null;
  const [first] = CombinedGraphQLErrors.is(error) ? error.errors : [];
  return (
    <p role="alert" className="failure">
      {first
        ? first.message
        : 'The store cannot be reached; try again shortly.'}
      {first?.extensions?.code ? (
        <code>{String(first.extensions.code)}</code>
      ) : null}
    </p>
  );
}
