// Modules run in the order of the document: after Apollo's script was loaded, or has failed to load.
const notice = document.getElementById('notice');
if (window.EmbeddedSandbox) {
  addEventListener('message', ({ origin }) => {
    if (origin === 'https://sandbox.embed.apollographql.com') document.body.classList.add('ready');
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
