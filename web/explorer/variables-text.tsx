import { pick, useGraphiQL } from '@graphiql/react';
import { type RefObject, useEffect } from 'react';

/**
 * Renders nothing. Gives the fetcher the variables as they were typed, because
 * GraphiQL passes them parsed.
 */
export function VariablesText({ of }: { of: RefObject<() => string> }) {
  const { variableEditor } = useGraphiQL(pick('variableEditor'));
  useEffect(() => {
    of.current = () => variableEditor?.getValue() ?? '';
  }, [of, variableEditor]);
  return null;
}
