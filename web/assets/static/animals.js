// The table of animals on the front page. It asks REST, which answers also where
// only registered GraphQL documents run.
import { call } from './key.js';

const at = (id) => document.getElementById(id);
const size = 20;

/** The id after which each page begins, up to the shown one. */
let starts = [null];
let end = null;
let total = 0;
let asked = 0;
/** Ends the live list. */
let live;
/** The last animal of the live list, after which it is continued. */
let last;

/** Called with the error when the key is no longer valid. */
let refused;
/** Until the counts are read again. */
let waiting;

/**
 * Shows the first page, and follows the list. @returns the headers of the
 * answer @throws Error with its `status`
 */
export async function openAnimals(onRefused) {
  const received = await read([null]);
  refused = onRefused;
  followAgain();
  return received;
}

export function closeAnimals() {
  clearTimeout(waiting);
  live?.abort();
  live = undefined;
}

export const isLive = () => at('live').dataset.state === 'live';

/** Reads the shown page again. */
export const readAgain = () => read(starts);

const status = () => at('filter').value || null;

async function read(pages, show = showPage) {
  const isAgain = pages === starts;
  const turn = isAgain ? asked : ++asked;
  const after = pages.at(-1);
  const response = await list(
    { limit: size, ...(after && { after }) },
    { headers: { prefer: 'count=exact' } },
  );
  const { headers } = response;
  const found = {
    pets: petsIn(await response.text()),
    hasNext: headers.has('link'),
    count: Number(headers.get('x-total-count')),
    isExact: headers.get('preference-applied') === 'count=exact',
  };
  // An answer that another question has overtaken is not shown.
  if (turn === asked && isAgain === (pages === starts)) show(pages, found);
  return headers;
}

/** @returns the response @throws Error with its `status` */
async function list(parameters, options) {
  const search = new URLSearchParams(parameters);
  if (status()) search.set('status', status());
  const response = await call(`v1/pets?${search}`, {
    ...options,
    cache: 'no-store',
  });
  if (!response.ok) throw failureOf(await response.json());
  return response;
}

const failureOf = ({ message, status }) =>
  Object.assign(new Error(message), { status });

/** Ids as text, so that no digit is lost. Quotes in a name are escaped. */
const petsIn = (json) =>
  JSON.parse(json.replace(/"(id|categoryId)":(-?\d+)/g, '"$1":"$2"'));

function showPage(pages, found) {
  const { pets } = found;
  starts = pages;
  at('pets').replaceChildren(...pets.map(rowOf));
  for (const { id } of pets)
    at('added').querySelector(`[data-id="${id}"]`)?.remove();
  const first = (starts.length - 1) * size;
  at('range').textContent =
    pets.length > 0 ? `${first + 1} to ${first + pets.length}` : 'No animals';
  allow('first', starts.length > 1);
  allow('previous', starts.length > 1);
  end = pets.at(-1)?.id;
  showCounts(pages, found);
}

function showCounts(_pages, { hasNext, count, isExact }) {
  total = count;
  allow('next', hasNext);
  showTotal(isExact);
}

function showTotal(isExact = !at('total').textContent.startsWith('about')) {
  at('total').textContent = isExact ? total : `about ${total}`;
  at('add').textContent =
    total === 0 && !status() ? 'Create your first animal' : 'Create an animal';
}

/** Not `disabled`, with which a button would lose the focus of the keyboard. */
function allow(id, isPossible) {
  at(id).setAttribute('aria-disabled', `${!isPossible}`);
}

function rowOf({ id, name, categoryId, status }) {
  const row = at('row').content.firstElementChild.cloneNode(true);
  row.dataset.id = id;
  [id, undefined, categoryId, status].forEach((text, column) => {
    if (text) row.children[column].textContent = text;
  });
  const isBlank = name.trim() === '';
  const shown = row.querySelector('bdi');
  shown.textContent = isBlank ? JSON.stringify(name) : name;
  shown.classList.toggle('quiet', isBlank);
  row.querySelector('.unseen').textContent = ` of animal ${id}`;
  // As REST answers: ids are numbers.
  row.querySelector('pre').textContent =
    `{\n  "id": ${id},\n  "name": ${JSON.stringify(name)},\n  "categoryId": ${categoryId},\n  "status": "${status}"\n}`;
  return row;
}

/** Follows the list from now on. */
function followAgain() {
  at('added').replaceChildren();
  last = undefined;
  follow();
}

/**
 * Continues after a lost connection, and only while the page is seen: browsers
 * have few connections for a host.
 */
async function follow() {
  live?.abort();
  live = new AbortController();
  if (document.hidden) return;
  const { signal } = live;
  let isNew = last === undefined;
  for (let pause = 1; !signal.aborted; pause = Math.min(2 * pause, 30)) {
    try {
      for await (const pet of added(signal)) {
        if (signal.aborted) return;
        pause = 1;
        if (pet) showAdded(pet);
        // The animals that were added between the page and the beginning of the
        // live list.
        if (isNew) await readAgain();
        if (signal.aborted) return;
        isNew = false;
        say('live', 'Live: new animals appear at the top.');
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) return refused(error);
      if (error.status < 500 && error.status !== 429)
        return say('ended', `Not live: ${error.message}`);
    }
    say('lost', 'The live list is interrupted, and will be continued.');
    await new Promise((done) => setTimeout(done, pause * 1000));
  }
}

function showAdded(pet) {
  last = pet.id;
  if (at('pets').querySelector(`[data-id="${pet.id}"]`)) return;
  total += 1;
  showTotal();
  at('added').prepend(rowOf(pet));
  // No more than a page of them.
  at('added').children[size]?.remove();
  // The page that is shown may have been counted before or after this one, and
  // now have a next one.
  clearTimeout(waiting);
  const isFull = at('added').children.length === size;
  waiting = setTimeout(
    () => read(starts, isFull ? showPage : showCounts).catch(reportFailure),
    500,
  );
}

function say(state, text) {
  if (at('live').dataset.state === state) return;
  at('live').dataset.state = state;
  at('live').textContent = text;
}

/** Yields animals as they are added, and nothing for a heartbeat. */
async function* added(signal) {
  const response = await list(
    { ...(last && { after: last }) },
    { headers: { accept: 'text/event-stream' }, signal },
  );
  for await (const { event, id, data } of eventsOf(response)) {
    if (event === 'error') throw failureOf(JSON.parse(data));
    // The first one says where the list begins.
    last ??= id;
    yield data && petsIn(data);
  }
}

/**
 * Yields server-sent events by their fields. Lines end as WHATWG HTML, section
 * 9.2.6, says; `$` and `.` of an expression would end them at U+2028, too.
 */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ''; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/(?:\r\n|\n|\r(?!\n)){2}/);
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split(/\r\n|\n|\r/);
        yield Object.fromEntries(
          lines.map((line) => line.split(/: ?(.*)/s, 2)),
        );
      }
    }
  } finally {
    // A browser has few connections for a host.
    await reader.cancel();
  }
}

at('filter').addEventListener('change', () => {
  read([null]).catch(reportFailure);
  followAgain();
});
for (const [id, target] of Object.entries({
  first: () => [null],
  previous: () => starts.slice(0, -1),
  next: () => [...starts, end],
})) {
  at(id).addEventListener('click', () => {
    if (at(id).getAttribute('aria-disabled') !== 'true')
      read(target()).catch(reportFailure);
  });
}
document.addEventListener('visibilitychange', () => live && follow());

function reportFailure(error) {
  if (error.status === 401) return refused(error);
  at('range').textContent = error.message;
}
