import { pick, useGraphiQL } from '@graphiql/react';
import { type RefObject, useEffect } from 'react';

/** Shows nothing; lets the fetcher, which GraphiQL gives parsed variables, read them as they were typed. */
export function VariablesText({ of }: { of: RefObject<() => string> }) {
  const { variableEditor } = useGraphiQL(pick('variableEditor'));
  useEffect(() => {
    of.current = () => variableEditor?.getValue() ?? '';
  }, [of, variableEditor]);
  return null;
}
