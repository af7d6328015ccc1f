// The part of the front page that needs a key: the collections, numbers of the
// store, and a form that adds an item.
import { sendForm, showForm } from './add-form.js';
import { loadCollections } from './collections.js';
import { addCopyButton } from './copy.js';
import { call, forgetKey, rememberedKey, rememberKey, root } from './key.js';
import { closeTable, isLive, openTable, readAgain } from './table.js';

const at = (id) => document.getElementById(id);

let collections = [];
let collection;

/**
 * Shows what this key may read; without a valid key, how to get one. A wrong
 * key is not kept.
 */
async function show() {
  const key = rememberedKey();
  if (!key) return hide();
  at('key').value = key;
  collections = await loadCollections();
  const wanted = new URLSearchParams(location.search).get('collection');
  collection =
    collections.find(({ name }) => name === wanted) ?? collections[0];
  if (!collection) return;
  listCollections();
  try {
    showNumbers(await openTable(collection, refuse));
  } catch (error) {
    return refuse(error);
  }
  at('forget').hidden = false;
  at('store').hidden = false;
  at('get-key').hidden = true;
  await showCaller();
  at('database').textContent = (await fetch(new URL('readyz', root))).ok
    ? 'ready'
    : 'not ready';
}

/** The form is for a key that may write. */
async function showCaller() {
  const { name, scope } = await (await call('whoami')).json();
  const use = 'All pages here use it until you close this tab.';
  say(`The key “${name}” (${scope}) is valid. ${use}`);
  const { input } = collection;
  const mayWrite = ['write', input?.scope].some((one) =>
    scope.split(' ').includes(one),
  );
  at('writing').hidden = !mayWrite || !input;
  if (input) showForm(input);
}

function listCollections() {
  at('collections').hidden = collections.length < 2;
  at('collections').replaceChildren(
    ...collections.map(({ name, title }) => {
      const link = document.createElement('a');
      link.href = `?collection=${name}`;
      link.textContent = title;
      if (name === collection.name) link.ariaCurrent = 'true';
      return link;
    }),
  );
}

/**
 * Also when a key is revoked, or a token ends, while the page is open. Another
 * failure is not the key's: it may read other lists.
 */
function refuse({ status, message }) {
  const isWrongKey = status === 401;
  hide(isWrongKey);
  say(message, true);
  at('key').setAttribute('aria-invalid', `${isWrongKey}`);
  at('forget').hidden = isWrongKey;
  if (isWrongKey) forgetKey();
}

function hide(isWithoutKey = true) {
  closeTable();
  at('store').hidden = true;
  at('collections').hidden ||= isWithoutKey;
  at('get-key').hidden = !isWithoutKey;
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
  const button = event.target.querySelector('button');
  button.disabled = true;
  try {
    const { response, text } = await sendForm(collection);
    if (response.status === 401)
      return refuse({ status: 401, message: JSON.parse(text).message });
    at('created').textContent = response.ok
      ? `${response.status} ${text}`
      : JSON.parse(text).message;
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
addEventListener('popstate', () => show().catch(failed));
at('your-key').hidden = false;
show().catch(failed);
