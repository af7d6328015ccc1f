import { asset } from './asset.ts';
import type { Example } from './example.ts';
import { dataElement, hashOf, home, type Page } from './page.ts';

/** Where Apollo publishes its script, and the frame that this opens, which is all that a user sees. */
const script = 'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';
const frame = 'https://sandbox.embed.apollographql.com';

const ownStyle = `
html { height: 100% }
body { display: flex; flex-direction: column; height: 100%; margin: 0; font: 1rem/1.5 var(--body);
  color: var(--text); background: var(--ground) }
main { flex: 1; position: relative }
#notice { max-width: 40rem; margin: 0 auto; padding: 15vh 1rem 0 }
iframe { position: absolute; inset: 0; width: 100%; height: 100%; border: 0 }
body:not(.ready) iframe { visibility: hidden }
.ready #notice { display: none }
a { color: var(--accent) }
`;

// Modules run in the order of the document: after Apollo's script has come, or has failed to.
const start = `
const notice = document.getElementById('notice');
if (window.EmbeddedSandbox) {
  addEventListener('message', ({ origin }) => {
    if (origin === '${frame}') document.body.classList.add('ready');
  });
  new window.EmbeddedSandbox({
    ...JSON.parse(document.getElementById('options').textContent),
    initialEndpoint: location.origin + location.pathname,
  });
  document.querySelector('iframe').title = 'Apollo Sandbox';
} else {
  notice.querySelector('h1').textContent = 'Apollo Sandbox cannot be loaded';
  notice.querySelector('p').textContent = 'Its servers cannot be reached: this browser seems to be offline.';
}
`;

/**
 * Apollo Sandbox for the endpoint at the page's own address, with an `Authorization` header to fill in. All but the
 * notice is loaded from Apollo; without that the page offers GraphiQL, which this service has itself. Sandbox knows no
 * server-sent events, and so no examples of subscriptions.
 */
export function sandboxPage(examples: Example[]): Page {
  const style = `${asset('theme.css')}${ownStyle}`;
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
  return {
    policy: [
      "default-src 'none'",
      `script-src ${hashOf(start)} ${script}`,
      `style-src ${hashOf(style)}`,
      `frame-src ${frame}/`,
      // The frame's requests are sent by this page.
      "connect-src 'self'",
      "img-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
    ].join(';'),
    html: `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Apollo Sandbox · Animal Store</title>
<link rel="icon" href="favicon.ico">
<style>${style}</style>
${dataElement('options', options)}
<script defer src="${script}"></script>
<script type="module">${start}</script>
</head>
<body>
<header class="bar">${home}<strong>Apollo Sandbox</strong>
<span>Without internet, and for subscriptions: <a href="graphiql">GraphiQL</a></span></header>
<main>
<div id="notice" role="status">
<h1>Apollo Sandbox is loading</h1>
<p>It comes from Apollo’s servers, and needs JavaScript.</p>
<p><a href="graphiql">Open GraphiQL</a>: this service has it itself, so it works without internet.</p>
</div>
</main>
</body>
</html>
`,
  };
}
