// Items of a collection. They are read by REST, which answers also where only
// registered GraphQL documents run.
import { call } from './key.js';

/**
 * Reads a page. @returns its items, its headers, and the parameters of the pages
 * `next` and `prev`, if there are such @throws Error with its `status`
 */
export async function readItems({ name }, parameters) {
  const headers = { prefer: 'count=exact' };
  const response = await list(name, parameters, { headers });
  return {
    items: itemsIn(await response.text()),
    headers: response.headers,
    ...pagesIn(response.headers.get('link') ?? ''),
  };
}

function pagesIn(link) {
  const pages = {};
  for (const [, address, name] of link.matchAll(/<([^>]*)>; rel="(\w+)"/g)) {
    const { searchParams } = new URL(address);
    const [after, before] = ['after', 'before'].map((end) =>
      searchParams.get(end),
    );
    pages[name] = { after, before };
  }
  return pages;
}

/**
 * Yields items as they are added, changed or removed, with the name of the
 * event, and nothing for a heartbeat. @param last `id` of the last event that
 * is known, which is changed
 */
export async function* eventsIn({ name, hasChanges }, filters, last, signal) {
  const headers = { accept: 'text/event-stream' };
  // Changes have no filter: an item may come to match it, or no longer.
  const followed = hasChanges ? { follow: 'all' } : filters;
  const parameters = { ...followed, ...(last.id && { after: last.id }) };
  const response = await list(name, parameters, { headers, signal });
  for await (const { event, id, data } of eventsOf(response)) {
    if (event === 'error') throw failureOf(JSON.parse(data));
    last.id = id ?? last.id;
    yield data && { name: event ?? 'added', item: itemsIn(data) };
  }
}

async function list(name, parameters, options) {
  const path = `v1/${name}?${new URLSearchParams(parameters)}`;
  const response = await call(path, { ...options, cache: 'no-store' });
  if (!response.ok) throw failureOf(await response.json());
  return response;
}

const failureOf = ({ message, status }) =>
  Object.assign(new Error(message), { status });

/**
 * Reads JSON with its numbers as texts, so that no digit is lost. They begin
 * with U+0000, which no text of the store contains.
 */
const itemsIn = (json) =>
  JSON.parse(
    json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
      token.startsWith('"') ? token : `"\\u0000${token}"`,
    ),
  );

/** The digits of a number, or undefined. */
export const digitsOf = (value) =>
  typeof value === 'string' && value.startsWith('\0')
    ? value.slice(1)
    : undefined;

/** As REST answers: numbers are numbers. */
export const jsonOf = (value) =>
  JSON.stringify(value, null, 2).replace(/"\\u0000([^"]+)"/g, '$1');

/**
 * Yields server-sent events by their fields. Lines end as WHATWG HTML, section
 * 9.2.6, says; `$` and `.` of an expression would end them at U+2028, too.
 */
export async function* eventsOf(response) {
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
