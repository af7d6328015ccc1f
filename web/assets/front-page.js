// The part of the front page that needs a key: numbers of the store, and a form that adds an animal.
import { forgetKey, rememberedKey, rememberKey } from './key.js';

const at = (id) => document.getElementById(id);
const root = new URL('.', location.href);

function call(path, { headers, ...options } = {}) {
  return fetch(new URL(path, root), {
    ...options,
    headers: { authorization: `Bearer ${rememberedKey()}`, ...headers },
  });
}

/** Shows the numbers that the API tells this key; without a usable key, only the field for one. */
async function show() {
  const key = rememberedKey();
  at('key').value = key;
  at('forget').hidden = !key;
  at('store').hidden = true;
  if (!key) return;
  const response = await call('v1/pets?limit=1', { headers: { prefer: 'count=exact' } });
  if (!response.ok) return say('said', (await response.json()).message);
  const total = response.headers.get('x-total-count');
  const [, left] = /;r=(\d+)/.exec(response.headers.get('ratelimit') ?? '') ?? [];
  const isEstimated = response.headers.get('preference-applied') === 'count=estimated';
  at('animals').textContent = isEstimated ? `about ${total}` : total;
  at('add').textContent = total === '0' ? 'Create your first animal' : 'Create an animal';
  at('database').textContent = (await fetch(new URL('readyz', root))).ok ? 'ready' : 'not ready';
  at('quota').hidden = left === undefined;
  at('left').textContent = `${left} units`;
  at('store').hidden = false;
  say('said', 'The key is valid.');
}

function say(id, text) {
  at(id).textContent = text;
}

at('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  rememberKey(at('key').value.trim());
  show().catch(failed);
});

at('forget').addEventListener('click', () => {
  forgetKey();
  say('said', 'The key is forgotten.');
  show();
});

at('create').addEventListener('submit', async (event) => {
  event.preventDefault();
  const { name, categoryId, status } = Object.fromEntries(new FormData(event.target));
  // The digits are text until they are sent: a JavaScript number would round an int64.
  const digits = categoryId.trim().replace(/^(-?)0+(?=\d)/, '$1');
  const body = `{"name":${JSON.stringify(name)},"categoryId":${digits},"status":${JSON.stringify(status)}}`;
  const button = event.target.querySelector('button');
  button.disabled = true;
  try {
    const response = await call('v1/pets', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    say('created', `${response.status} ${await response.text()}`);
    at('created').hidden = false;
    if (response.ok) await show();
  } catch {
    failed();
  } finally {
    button.disabled = false;
  }
});

function failed() {
  say('said', 'The service cannot be reached. Try again.');
}

at('your-key').hidden = false;
show().catch(failed);
