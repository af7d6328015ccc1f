// GraphiQL for the endpoint `graphql` beside this page, with the key of the tab,
// the modules' examples, exact numbers and subscriptions as server-sent events.
import { parseExactly } from './exact-json.js';
import { eventsOf } from './items.js';
import { call, forgetKey, rememberedKey, rememberKey } from './key.js';

const { React, ReactDOM, GraphiQL, GraphiQLPluginExplorer } = globalThis;
const { getOperationAST, parse } = GraphiQL.GraphQL;
const h = React.createElement;
const at = (id) => document.getElementById(id);

const examples = JSON.parse(at('examples').textContent);
const plugins = [GraphiQLPluginExplorer.explorerPlugin()];
const root = ReactDOM.createRoot(at('root'));

/** GraphiQL's tabs and editors. */
let editors;

/** Renders nothing. The editors get names that screen readers need. */
function Editors() {
  editors = GraphiQL.React.useEditorContext();
  const { queryEditor, variableEditor, responseEditor } = editors;
  React.useEffect(() => {
    name(queryEditor, 'Query');
    name(variableEditor, 'JSON of the variables');
    name(responseEditor, 'Response');
  }, [queryEditor, variableEditor, responseEditor]);
  return null;
}

function name(editor, text) {
  if (editor) editor.getInputField().ariaLabel = text;
}

/** A new key is a new fetcher, which requests the schema. */
function show() {
  const key = rememberedKey();
  at('key').value = key;
  at('forget').hidden = !key;
  say(key ? '' : 'Paste an API key to load the schema.');
  const properties = {
    fetcher: fetcherFor(key),
    // Without a key the schema is not requested.
    schema: key ? undefined : null,
    schemaDescription: true,
    inputValueDeprecation: true,
    plugins,
    defaultQuery: '',
    defaultTabs: examples.slice(0, 1).map(({ document }) => ({
      query: document,
    })),
    // History stores headers in localStorage, which must not contain the key.
    isHeadersEditorEnabled: false,
    showPersistHeadersSettings: false,
    defaultEditorToolsVisibility: true,
  };
  root.render(h(GraphiQL, properties, h(GraphiQL.Logo, null, h(Editors))));
}

function say(text) {
  at('said').textContent = text;
}

const fetcherFor = (key) => async (params) => {
  const isForSchema = params.operationName === 'IntrospectionQuery';
  if (isForSchema) return schemaFor(key, params);
  const operation = operationOf(params);
  const request = {
    query: params.query,
    operationName: operation?.name?.value,
    variables:
      params.variables && parseExactly(editors.variableEditor.getValue()),
  };
  return operation?.operation === 'subscription'
    ? subscribe(request)
    : post(request);
};

/**
 * Prefers the document's only operation, because shortly after a change
 * GraphiQL still passes the previous name.
 */
function operationOf({ query, operationName }) {
  try {
    const document = parse(query);
    return (
      getOperationAST(document) ?? getOperationAST(document, operationName)
    );
  } catch {
    // The service reports the syntax error.
    return undefined;
  }
}

/**
 * @throws Error with the service's message. If it were a result, GraphiQL would
 *   send the request again.
 */
async function schemaFor(key, params) {
  const result = await post(params).catch(({ message }) => ({
    errors: [{ message }],
  }));
  const { data, errors: [{ message }] = [{}] } = result;
  const text = message ?? 'The response contains no schema.';
  // A notice about a previous key is not shown.
  if (key === rememberedKey()) say(data ? 'The schema is loaded.' : text);
  if (!data) throw new Error(text);
  return result;
}

const send = (request, accept, signal) =>
  call('graphql', {
    method: 'POST',
    headers: { accept, 'content-type': 'application/json' },
    body: JSON.stringify(request),
    signal,
  });

/**
 * @throws Error if the service cannot be reached, or the response is not JSON
 */
async function post(request) {
  const response = await send(request, 'application/json').catch(() => {
    throw new Error('The service cannot be reached.');
  });
  return resultIn(response);
}

async function resultIn(response) {
  const text = await response.text();
  try {
    return parseExactly(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(
      `The response with the status ${response.status} is not JSON. It may come from a proxy.`,
    );
  }
}

/**
 * A subscription as server-sent events. Its end does not wait for the next
 * event, as that of a generator would.
 */
function subscribe(request) {
  const abort = new AbortController();
  const results = resultsOf(request, abort.signal);
  const iterator = {
    next: () => results.next(),
    return: async () => {
      abort.abort();
      return { done: true };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

async function* resultsOf(request, signal) {
  try {
    const response = await send(request, 'text/event-stream', signal);
    if (!response.ok) return yield resultIn(response);
    for await (const { event, data } of eventsOf(response)) {
      if (event === 'next') yield parseExactly(data);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Opens an example in a tab of its own. */
function openExample({ document, variables }) {
  const text = variables ? JSON.stringify(variables, null, 2) : '';
  editors.addTab();
  editors.queryEditor.setValue(document);
  editors.variableEditor.setValue(text);
  const operationName = getOperationAST(parse(document)).name.value;
  const values = { query: document, variables: text, operationName };
  editors.updateActiveTabValues(values);
}

at('example').append(
  ...examples.map(({ title }, index) => new Option(title, index)),
);
at('example').addEventListener('change', ({ target }) => {
  openExample(examples[target.value]);
  target.value = '';
});
at('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  rememberKey(at('key').value.trim());
  show();
});
at('forget').addEventListener('click', () => {
  forgetKey();
  show();
});
show();
