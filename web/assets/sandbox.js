// Modules run in the order of the document: after Apollo's script was loaded,
// or has failed to load.
const notice = document.getElementById('notice');
const endpoint = location.origin + location.pathname;
const placeholder = 'Bearer <API_KEY>';

/**
 * Sends a request of the frame. The key of this tab takes the placeholder's
 * place here, so the frame never has it.
 */
function send(url, { headers, ...options }) {
  // As `key.js` keeps it.
  const key = sessionStorage.getItem('api-key');
  const withKey = ([name, value]) => [
    name,
    key && url === endpoint && value === placeholder ? `Bearer ${key}` : value,
  ];
  return fetch(url, {
    ...options,
    headers: Object.fromEntries(Object.entries(headers).map(withKey)),
  });
}

if (window.EmbeddedSandbox) {
  addEventListener('message', ({ origin }) => {
    if (origin === 'https://sandbox.embed.apollographql.com')
      document.body.classList.add('ready');
  });
  new window.EmbeddedSandbox({
    ...JSON.parse(document.getElementById('options').textContent),
    initialEndpoint: endpoint,
    handleRequest: send,
  });
  document.querySelector('iframe').title = 'Apollo Sandbox';
} else {
  notice.querySelector('h1').textContent = 'Apollo Sandbox cannot be loaded';
  notice.querySelector('p').textContent =
    'Its servers cannot be reached: this browser seems to be offline.';
}
