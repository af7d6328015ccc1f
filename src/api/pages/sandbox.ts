import type { Example } from './example.ts';
import { asset, dataElement, fill, hashOf, type Page, policyOf } from './page.ts';

/** Apollo's script, and the frame that it opens. */
const script = 'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';
const frame = 'https://sandbox.embed.apollographql.com/';

/**
 * Apollo Sandbox for the endpoint at the page's own address, with an `Authorization` header to fill in. Only the notice
 * is loaded from here; without internet it offers GraphiQL. Sandbox does not support server-sent events, so it gets no
 * examples of subscriptions.
 */
export function sandboxPage(examples: Example[]): Page {
  const style = `${asset('theme.css')}${asset('sandbox.css')}`;
  const start = asset('sandbox.js').toString();
  const shown = examples.filter(({ document }) => !document.startsWith('subscription'));
  const options = {
    target: 'main',
    initialState: {
      document: shown.map(({ title, document }) => `# ${title}\n${document}`).join('\n'),
      variables: Object.assign({}, ...shown.map(({ variables }) => variables)),
      // Not `sharedHeaders`: users cannot edit those, and Sandbox introspects with them.
      headers: { Authorization: 'Bearer <API_KEY>' },
      pollForSchemaUpdates: false,
    },
    endpointIsEditable: false,
    runTelemetry: false,
    // Styles in attributes, which the policy forbids.
    allowDynamicStyles: false,
  };
  const places = {
    style: `<style>${style}</style>`,
    options: dataElement('options', options),
    script,
    start: `<script type="module">${start}</script>`,
  };
  return {
    html: fill(asset('sandbox.html').toString(), places),
    policy: policyOf(
      `script-src ${hashOf(start)} ${script}`,
      `style-src ${hashOf(style)}`,
      `frame-src ${frame}`,
      // The frame's requests are sent by this page.
      "connect-src 'self'",
      "img-src 'self'",
    ),
  };
}
