// The part of the front page that needs a key: the animals, numbers of the
// store, and a form that adds an animal.
import { closeAnimals, isLive, openAnimals, readAgain } from './animals.js';
import { addCopyButton } from './copy.js';
import { call, forgetKey, rememberedKey, rememberKey, root } from './key.js';

const at = (id) => document.getElementById(id);

/**
 * Shows what this key may read; without a valid key, how to get one. A wrong
 * key is not kept.
 */
async function show() {
  const key = rememberedKey();
  if (!key) return hide();
  at('key').value = key;
  try {
    showNumbers(await openAnimals(refuse));
  } catch (error) {
    return refuse(error);
  }
  at('forget').hidden = false;
  at('store').hidden = false;
  at('create').hidden = false;
  at('get-key').hidden = true;
  say('The key is valid. All pages here use it until you close this tab.');
  at('database').textContent = (await fetch(new URL('readyz', root))).ok
    ? 'ready'
    : 'not ready';
}

/** Also when a key is revoked, or a token ends, while the page is open. */
function refuse(error) {
  hide();
  say(error.message, true);
  if (error.status !== 401) return;
  forgetKey();
  at('forget').hidden = true;
}

function hide() {
  closeAnimals();
  at('store').hidden = true;
  at('get-key').hidden = false;
}

function showNumbers(headers) {
  const [, left] = /;r=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? [];
  at('quota').hidden = left === undefined;
  at('left').textContent = `${left} units`;
}

function say(text, isWrong = false) {
  at('said').textContent = text;
  at('said').classList.toggle('wrong', isWrong);
  at('key').setAttribute('aria-invalid', `${isWrong}`);
}

function failed() {
  say('The service cannot be reached. Try again.', true);
}

at('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  rememberKey(at('key').value.trim());
  show().catch(failed);
});

at('forget').addEventListener('click', () => {
  forgetKey();
  hide();
  at('key').value = '';
  at('forget').hidden = true;
  say('The key is forgotten.');
  at('key').focus();
});

at('create').addEventListener('submit', async (event) => {
  event.preventDefault();
  const { name, categoryId, status } = Object.fromEntries(
    new FormData(event.target),
  );
  // The digits are text until they are sent: a JavaScript number would round an
  // int64.
  const digits = categoryId.trim().replace(/^(-?)0+(?=\d)/, '$1');
  const body = `{"name":${JSON.stringify(name)},"categoryId":${digits},"status":${JSON.stringify(status)}}`;
  const button = event.target.querySelector('button');
  button.disabled = true;
  try {
    const response = await call('v1/pets', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const text = await response.text();
    if (response.status === 401)
      return refuse({ status: 401, message: JSON.parse(text).message });
    at('created').textContent = response.ok
      ? `${response.status} ${text}`
      : JSON.parse(text).message;
    at('create').hidden = response.status === 403;
    at('created').hidden = false;
    showNumbers(response.headers);
    if (response.ok && !isLive()) await readAgain();
  } catch {
    failed();
  } finally {
    button.disabled = false;
  }
});

for (const pre of document.querySelectorAll('main section > pre:not([hidden])'))
  addCopyButton(pre);
at('your-key').hidden = false;
show().catch(failed);
