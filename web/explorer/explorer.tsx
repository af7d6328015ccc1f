import {
  DOC_EXPLORER_PLUGIN,
  DocExplorerStore,
} from '@graphiql/plugin-doc-explorer';
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { HISTORY_PLUGIN, HistoryStore } from '@graphiql/plugin-history';
import { GraphiQLProvider } from '@graphiql/react';
import { GraphiQLInterface } from 'graphiql';
import { useMemo, useRef, useState } from 'react';
import { type Example, ExampleMenu } from './example-menu.tsx';
import { createFetcher } from './fetcher.ts';
import { KeyForm } from './key-form.tsx';
import { forgetKey, rememberedKey, rememberKey } from './key-memory.ts';
import { SystemTheme } from './system-theme.tsx';
import { VariablesText } from './variables-text.tsx';

const plugins = [DOC_EXPLORER_PLUGIN, explorerPlugin(), HISTORY_PLUGIN];
const withoutKey = 'Paste an API key to load the schema.';

/**
 * GraphiQL for the endpoint `graphql` next to this page, with a field for the
 * key and the modules' examples.
 */
export function Explorer({ examples }: { examples: Example[] }) {
  const [key, setKey] = useState(rememberedKey);
  const [notice, setNotice] = useState({ of: '', message: '' });
  const variablesText = useRef(() => '');
  const fetcher = useMemo(
    () =>
      createFetcher({
        key,
        variablesText: () => variablesText.current(),
        onSchema: (message) => setNotice({ of: key, message }),
      }),
    [key],
  );
  const change = (next: string) => {
    setKey(next);
    if (next) rememberKey(next);
    else forgetKey();
  };
  return (
    <GraphiQLProvider
      fetcher={fetcher}
      // Without a key the schema is not requested. Each new key creates a new
      // fetcher, which requests it.
      schema={key ? undefined : null}
      schemaDescription
      inputValueDeprecation
      plugins={plugins}
      referencePlugin={DOC_EXPLORER_PLUGIN}
      defaultQuery=""
      defaultTabs={examples
        .slice(0, 1)
        .map(({ document }) => ({ query: document }))}
    >
      <HistoryStore>
        <DocExplorerStore>
          <section className="bar" aria-label="Controls">
            <h1 className="unseen">GraphiQL</h1>
            <KeyForm current={key} onChange={change} />
            <ExampleMenu examples={examples} />
            {/* A notice about a previous key is not shown. */}
            <p role="status">
              {key ? notice.of === key && notice.message : withoutKey}
            </p>
          </section>
          <VariablesText of={variablesText} />
          <SystemTheme />
          <main>
            {/* History stores headers in localStorage, which must not contain the key. The field above is for the key. */}
            <GraphiQLInterface
              isHeadersEditorEnabled={false}
              showPersistHeadersSettings={false}
              defaultEditorToolsVisibility
            />
          </main>
        </DocExplorerStore>
      </HistoryStore>
    </GraphiQLProvider>
  );
}
