// The table of a collection. The address of the page says what it shows: the
// collection, its order, its filters, and where the page begins or ends.
import { wordsOf } from './collections.js';
import { digitsOf, eventsIn, jsonOf, readItems } from './items.js';

const at = (id) => document.getElementById(id);
const size = 20;

/** The shown collection, and its page. */
let shown;
let page;
/** Ids that were added while the table was open. */
const fresh = new Set();
let asked = 0;
/** Ends the live list. */
let live;
/** Its last item, after which it is continued. */
let last = {};
/** Until the page is read again. */
let waiting;
/** Called with the error when the key is no longer valid. */
let refused;

/**
 * Shows the page of the address, and follows the list. @returns the headers of
 * the answer @throws Error with its `status`
 */
export async function openTable(collection, onRefused) {
  refused = onRefused;
  if (shown !== collection) showFrame(collection);
  const headers = await read();
  followAgain();
  return headers;
}

export function closeTable() {
  clearTimeout(waiting);
  live?.abort();
  live = undefined;
}

export const isLive = () => at('live').dataset.state === 'live';

/** Reads the shown page again. */
export const readAgain = () => read();

// What the address says.

const search = () => new URLSearchParams(location.search);
const order = () => search().get('sort') ?? shown.order;
const isById = () => /^id(_desc)?$/.test(order());
/** How many items are before the page; unknown after a link. */
const position = () => (page.prev ? history.state?.position : 0);

function filters() {
  const given = shown.filters.map(({ name }) => [name, search().get(name)]);
  return Object.fromEntries(given.filter(([, value]) => value));
}

/** Shows another page, which has an address of its own. */
async function go(changes, nextPosition) {
  const next = search();
  const places = { after: '', before: '' };
  for (const [name, value] of Object.entries({ ...places, ...changes }))
    value ? next.set(name, value) : next.delete(name);
  const query = next.size > 0 ? `?${next}` : location.pathname;
  history.pushState({ position: nextPosition }, '', query);
  fresh.clear();
  await read();
}

const ends = () =>
  Object.fromEntries(
    [...search()].filter(([name]) => ['after', 'before'].includes(name)),
  );

// Reading.

async function read() {
  const turn = ++asked;
  const { headers, ...found } = await readItems(shown, {
    limit: size,
    ...filters(),
    ...(shown.orders.length > 1 && { sort: order() }),
    ...ends(),
  });
  // An answer that another question has overtaken is not shown.
  if (turn === asked) showPage(found, headers);
  return headers;
}

// Showing.

/** Everything but the items. */
function showFrame(collection) {
  shown = collection;
  const heading = shown.title[0].toUpperCase() + shown.title.slice(1);
  at('store-title').textContent = heading;
  at('counted').textContent = heading;
  at('table').setAttribute('aria-label', `Table: ${shown.title}`);
  at('heads').replaceChildren(...shown.members.map(headOf), lastHead());
  at('filters').replaceChildren(...shown.filters.map(filterOf), orderChoice());
  at('items').replaceChildren();
}

function headOf({ name, type }) {
  const head = make('th', { scope: 'col', textContent: wordsOf(name) });
  if (isNumber(type)) head.className = 'number';
  return head;
}

function lastHead() {
  const head = make('th', { scope: 'col' });
  head.append(make('span', { className: 'unseen', textContent: 'JSON' }));
  return head;
}

const isNumber = (type) => type === 'integer' || type === 'number';

function filterOf({ name, enum: choices }) {
  const field = choices
    ? choiceOf([['', 'all'], ...choices.map((one) => [one, one])])
    : make('input', { size: 12 });
  field.name = name;
  field.addEventListener('change', () => {
    go({ [name]: field.value })
      .then(followAgain)
      .catch(report);
  });
  return labelled(wordsOf(name), field);
}

function orderChoice() {
  const field = choiceOf(shown.orders.map((one) => [one, orderWords(one)]));
  field.name = 'sort';
  field.addEventListener('change', () =>
    go({ sort: field.value }).catch(report),
  );
  const label = labelled('Order', field);
  label.hidden = shown.orders.length < 2;
  return label;
}

function orderWords(name) {
  if (name === 'id') return 'oldest first';
  if (name === 'id_desc') return 'newest first';
  const words = wordsOf(name.replace(/_desc$/, ''));
  return name.endsWith('_desc') ? `${words}, descending` : words;
}

function choiceOf(options) {
  const field = make('select', {});
  field.append(
    ...options.map(([value, textContent]) =>
      make('option', { value, textContent }),
    ),
  );
  return field;
}

function labelled(text, field) {
  const label = make('label', { textContent: `${text} ` });
  label.append(field);
  return label;
}

const make = (name, properties) =>
  Object.assign(document.createElement(name), properties);

function showPage(found, headers) {
  page = found;
  for (const { name } of shown.filters) showChoice(name, '');
  showChoice('sort', shown.order);
  at('jump').hidden = !isById();
  placeRows(page.items.map((item) => rowOf(item)));
  showTotal(headers);
  at('range').textContent = rangeOf(position(), page.items.length);
  allow('first', page.prev !== undefined);
  allow('previous', page.prev !== undefined);
  allow('next', page.next !== undefined);
  if (isLive()) sayLive();
}

/** What is being typed stays: a field changes with the address only. */
function showChoice(name, usual) {
  const field = at('filters').querySelector(`[name="${name}"]`);
  const chosen = search().get(name) ?? usual;
  if (field.dataset.chosen === chosen) return;
  field.dataset.chosen = chosen;
  field.value = chosen;
}

function showTotal(headers) {
  const total = headers.get('x-total-count');
  const isExact = headers.get('preference-applied') === 'count=exact';
  const count = Number(total).toLocaleString('en');
  at('total').parentElement.hidden = total === null;
  at('total').textContent = isExact ? count : `about ${count}`;
}

function rangeOf(before, length) {
  if (length === 0) return `No ${shown.title}`;
  if (before === undefined) return `${length} ${shown.title}`;
  return `${before + 1} to ${before + length}`;
}

/** Rows that stay are not moved: they keep the focus, and open JSON. */
function placeRows(rows) {
  const body = at('items');
  for (const row of [...body.children]) if (!rows.includes(row)) row.remove();
  for (const [index, row] of rows.entries())
    if (body.children[index] !== row)
      body.insertBefore(row, body.children[index] ?? null);
}

/** Not `disabled`, with which a button would lose the focus of the keyboard. */
function allow(id, isPossible) {
  at(id).setAttribute('aria-disabled', `${!isPossible}`);
}

/** The row of an item: that which shows it, or a new one. */
function rowOf(item) {
  const id = digitsOf(item.id) ?? item.id;
  const json = jsonOf(item);
  const old = [...at('items').children].find((row) => row.dataset.id === id);
  if (old?.querySelector('pre').textContent === json) return marked(old);
  const row = at('row').content.firstElementChild.cloneNode(true);
  row.dataset.id = id;
  row.prepend(...shown.members.map((member) => cellOf(member, item)));
  row.querySelector('.unseen').textContent = ` of ${id}`;
  row.querySelector('pre').textContent = json;
  return marked(row);
}

function marked(row) {
  row.classList.toggle('new', fresh.has(row.dataset.id));
  return row;
}

function cellOf({ name, type, enum: choices }, item) {
  const cell = make('td', { className: isNumber(type) ? 'number' : '' });
  // On a phone. A choice says what it is.
  cell.dataset.label = choices && type === 'string' ? '' : wordsOf(name);
  const text = make('bdi', { textContent: textOf(item[name]) });
  text.classList.toggle('quiet', !isPlain(item[name]));
  cell.append(text);
  return cell;
}

/** A text that can be seen. Another value is shown as JSON. */
const isPlain = (value) => typeof value === 'string' && value.trim() !== '';
const textOf = (value) =>
  digitsOf(value) ?? (isPlain(value) ? value : jsonOf(value ?? null));

// Following.

/** Follows the list from now on. */
function followAgain() {
  follow({});
}

/**
 * Continues after a lost connection, and only while the page is seen: browsers
 * have few connections for a host.
 */
async function follow(from) {
  live?.abort();
  live = new AbortController();
  last = from;
  say('', '');
  // Ranges and beginnings belong to an order that no live list has.
  const isOrdered = Object.keys(filters()).some((name) => name.includes('_'));
  if (document.hidden || !shown.isLive || isOrdered) return;
  const { signal } = live;
  const isOfPage = !shown.hasChanges || Object.keys(filters()).length === 0;
  for (let pause = 1; !signal.aborted; pause = Math.min(2 * pause, 30)) {
    try {
      let isFirst = true;
      for await (const told of eventsIn(shown, filters(), last, signal)) {
        if (signal.aborted) return;
        pause = 1;
        if (isOfPage && told?.name === 'added')
          fresh.add(digitsOf(told.item.id));
        if (told?.name === 'removed') fresh.delete(digitsOf(told.item.id));
        // What has happened between the page and the beginning of the live
        // list.
        if (isFirst) await read();
        else if (told) readSoon();
        if (signal.aborted) return;
        isFirst = false;
        sayLive();
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

/** What happens together is read together, in their places. */
function readSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => read().catch(report), 200);
}

function sayLive() {
  const isSeen = (id) => page.items.some((item) => digitsOf(item.id) === id);
  const others = [...fresh].filter((id) => !isSeen(id)).length;
  const text =
    others > 0
      ? `${others} new on other pages.`
      : `new ${shown.title} appear by themselves.`;
  say('live', `Live: ${text}`);
}

function say(state, text) {
  at('live').dataset.state = state;
  if (at('live').textContent !== text) at('live').textContent = text;
}

function report(error) {
  if (error.status === 401) return refused(error);
  at('range').textContent = error.message;
}

// The controls.

async function openId(id) {
  const before = order() === 'id' ? id - 1n : id + 1n;
  const isInt64 = BigInt.asIntN(64, before) === before;
  await go({ after: isInt64 ? `${before}` : '' });
  const [first] = at('items').children;
  if (first?.dataset.id !== `${id}`)
    at('range').textContent = `The id ${id} is not in this list.`;
  else first.setAttribute('aria-current', 'true');
}

at('jump').addEventListener('submit', (event) => {
  event.preventDefault();
  openId(BigInt(at('id').value.trim())).catch(report);
});

const targets = {
  first: () => go({}),
  previous: () => go(page.prev, moved(-size)),
  next: () => go(page.next, moved(page.items.length)),
};

function moved(by) {
  const before = position();
  return before === undefined ? undefined : before + by;
}

for (const [id, open] of Object.entries(targets)) {
  at(id).addEventListener('click', () => {
    if (at(id).getAttribute('aria-disabled') !== 'true') open().catch(report);
  });
}
document.addEventListener('visibilitychange', () => live && follow(last));
