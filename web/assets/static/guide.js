// What a guide does in a browser: it names the address of this service, copies
// code, folds its lists on a phone, and searches in all guides.
import { addCopyButton } from './copy.js';

const at = (id) => document.getElementById(id);
const written = 'http://127.0.0.1:4000';
const root = new URL('../..', import.meta.url);
const address = root.href.replace(/\/$/, '');

for (const code of document.querySelectorAll('main :is(code, a)')) {
  if (code.href?.startsWith(written))
    code.href = code.href.replace(written, address);
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: text } = texts;
    text.data = text.data.replaceAll(written, address);
  }
}
for (const pre of document.querySelectorAll('main pre')) addCopyButton(pre);
if (matchMedia('(max-width: 760px)').matches) {
  for (const list of document.querySelectorAll('nav details'))
    list.open = false;
}

/** The index is loaded when the search is first opened. */
let search;

async function openSearch() {
  at('search').showModal();
  at('question').select();
  try {
    const [{ guides }, { searchIn, stemsOf }] = await Promise.all([
      import('../../guide/search-index.js'),
      import('./find.js'),
    ]);
    search ??= { find: searchIn(guides), stemsOf };
    showResults();
  } catch {
    at('found').textContent = 'The index cannot be loaded. Reload the page.';
  }
}

function showResults() {
  const question = at('question').value.trim();
  const results = question ? search.find(question) : [];
  const stems = search.stemsOf(question).join('|');
  const found = new RegExp(
    `((?<![\\p{L}\\p{N}])(?:${stems})[\\p{L}\\p{N}]*)`,
    'iu',
  );
  at('results').replaceChildren(...results.map((one) => itemOf(one, found)));
  at('found').textContent = question
    ? `${results.length} found`
    : 'Type a word, a code or a question.';
}

function itemOf({ address, title, heading, block }, found) {
  const link = element(
    'a',
    element('strong', ...marked(heading, found)),
    ' ',
    element('small', title === heading ? '' : title),
    element('p', ...marked(partOf(block, found), found)),
  );
  link.href = new URL(address, root);
  return element('li', link);
}

/** A block from shortly before the first word that was found. */
function partOf(block, found) {
  const start = block.search(found) - 60;
  const part =
    start > 0 ? `… ${block.slice(start).replace(/^\S* /, '')}` : block;
  return part.slice(0, 220);
}

/** Text with marks, which may be broken after each `_`. */
function marked(text, found) {
  return text.split(found).map((part, index) => {
    const pieces = part
      .split(/(?<=_)/)
      .flatMap((piece) => [piece, element('wbr')]);
    return element(index % 2 === 0 ? 'span' : 'mark', ...pieces);
  });
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** Moves the focus between the field and the results. */
function moveBy(step) {
  const stops = [at('question'), ...at('results').querySelectorAll('a')];
  const next = stops.indexOf(document.activeElement) + step;
  stops[(next + stops.length) % stops.length].focus();
}

function onKey(event) {
  const { key, target } = event;
  const isOpen = at('search').open;
  const isCommand = event.ctrlKey || event.altKey || event.metaKey;
  if (isCommand) return;
  if (key === '/' && !isOpen) openSearch();
  else if (key === 'ArrowDown' && isOpen) moveBy(1);
  else if (key === 'ArrowUp' && isOpen) moveBy(-1);
  else if (key === 'Enter' && target === at('question'))
    at('results').querySelector('a')?.click();
  else return;
  event.preventDefault();
}

at('open-search').hidden = false;
at('open-search').addEventListener('click', openSearch);
at('close-search').addEventListener('click', () => at('search').close());
at('question').addEventListener('input', () => search && showResults());
at('results').addEventListener('click', () => at('search').close());
addEventListener('keydown', onKey);
