import { pick, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { getOperationAST, parse } from 'graphql';

/** `src/features/pages/explorers.ts` writes these into the page. */
export interface Example {
  title: string;
  document: string;
  variables?: Record<string, unknown>;
}

/** Opens the chosen example in a tab of its own. */
export function ExampleMenu({ examples }: { examples: Example[] }) {
  const { addTab, updateActiveTabValues } = useGraphiQLActions();
  const { queryEditor, variableEditor } = useGraphiQL(
    pick('queryEditor', 'variableEditor'),
  );
  const open = ({ document, variables }: Example) => {
    const text = variables ? JSON.stringify(variables, null, 2) : '';
    addTab();
    queryEditor?.setValue(document);
    variableEditor?.setValue(text);
    const operationName = getOperationAST(parse(document))?.name?.value;
    updateActiveTabValues({ query: document, variables: text, operationName });
  };
  const choose = (index: string) => {
    const example = examples[Number(index)];
    if (example) open(example);
  };
  return (
    <label>
      Examples{' '}
      <select
        value=""
        disabled={!variableEditor}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="" disabled>
          Open one …
        </option>
        {examples.map(({ title }, index) => (
          <option key={title} value={index}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
