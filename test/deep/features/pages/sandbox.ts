import { createRequire } from 'node:module';
import { build } from 'esbuild';
import type { Stub } from '../../support/browser.ts';

const require = createRequire(import.meta.url);

/**
 * The address of Apollo's frame, which shows the whole user interface. It is
 * the only part that tests must replace.
 */
export const frameOrigin = 'https://sandbox.embed.apollographql.com';

/**
 * Apollo's script as its servers deliver it: the package `@apollo/sandbox` for
 * browsers, with its global name.
 */
export async function sandboxScript(): Promise<Stub> {
  const { outputFiles } = await build({
    entryPoints: [
      require.resolve('@apollo/sandbox/EmbeddedSandbox.production.min.cjs'),
    ],
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
 * Replaces the frame. It exchanges the messages of `@apollo/sandbox`, and
 * treats headers as Apollo documents them. The user can edit `defaultHeaders`;
 * introspection sends them when `sendOperationHeadersInIntrospection` is set.
 * Every request sends `sharedHeaders`, which the user cannot edit.
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
