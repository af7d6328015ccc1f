import { createRequire } from 'node:module';
import { build } from 'esbuild';
import type { Stub } from './browser.ts';

const require = createRequire(import.meta.url);

/** The address of Apollo's frame, which does all that a user sees. It is the only part that tests cannot have. */
export const frameOrigin = 'https://sandbox.embed.apollographql.com';

/** Apollo's script as its servers give it: the package `@apollo/sandbox` for browsers, under its global name. */
export async function sandboxScript(): Promise<Stub> {
  const { outputFiles } = await build({
    entryPoints: [require.resolve('@apollo/sandbox/EmbeddedSandbox.production.min.cjs')],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'sandbox',
    footer: { js: 'window.EmbeddedSandbox = sandbox.EmbeddedSandbox;' },
    platform: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return { contentType: 'text/javascript', body: outputFiles[0]?.text ?? '' };
}

/**
 * Stands in for the frame: it speaks the messages that `@apollo/sandbox` sends and understands, and treats headers as
 * Apollo documents it. `defaultHeaders` are in a field for the user to edit, and go with introspection when
 * `sendOperationHeadersInIntrospection` is set; `sharedHeaders` go with everything, and nobody can edit them.
 */
export const sandboxFrame: Stub = {
  contentType: 'text/html',
  body: `<!DOCTYPE html>
<pre id="settings"></pre>
<textarea id="headers"></textarea>
<button id="introspect"></button><button id="run"></button>
<pre id="schema"></pre>
<pre id="response"></pre>
<script>
  const settings = Object.fromEntries(new URLSearchParams(location.search));
  const at = (id) => document.getElementById(id);
  const headers = (areSent) => ({
    ...JSON.parse(settings.sharedHeaders ?? '{}'),
    ...(areSent && JSON.parse(at('headers').value)),
  });
  const tell = (message) => parent.postMessage(message, '*');
  const introspect = () =>
    tell({
      name: 'IntrospectionQueryWithHeaders',
      sandboxEndpointUrl: settings.endpoint,
      introspectionRequestBody: JSON.stringify({
        operationName: 'IntrospectionQuery',
        query: 'query IntrospectionQuery { __schema { queryType { name } mutationType { name } } }',
      }),
      introspectionRequestHeaders: headers(settings.sendOperationHeadersInIntrospection === 'true'),
      includeCookies: false,
      operationId: 'schema',
    });
  const run = () =>
    tell({
      name: 'ExplorerRequest',
      endpointUrl: settings.endpoint,
      operation: decodeURIComponent(settings.defaultDocument),
      operationName: 'Pets',
      variables: {},
      headers: headers(true),
      includeCookies: false,
      operationId: 'operation',
    });
  const shown = {
    HandshakeResponse: () => {
      introspect();
      if (settings.shouldDefaultAutoupdateSchema === 'true') setInterval(introspect, 1000);
    },
    SchemaResponse: ({ schema }) => { at('schema').textContent += JSON.stringify({ schema }) + '\\n'; },
    SchemaError: ({ errors }) => { at('schema').textContent += JSON.stringify({ errors }) + '\\n'; },
    ExplorerResponse: ({ response }) => { at('response').textContent = JSON.stringify(response); },
  };
  addEventListener('message', ({ data }) => shown[data.name]?.(data));
  at('settings').textContent = JSON.stringify(settings);
  at('headers').value = settings.defaultHeaders ?? '{}';
  at('introspect').onclick = introspect;
  at('run').onclick = run;
  tell({ name: 'ExplorerListeningForHandshake' });
</script>`,
};
