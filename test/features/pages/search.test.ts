import { send } from '../../support/http.ts';
import { beforeAll, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** The search in the guides: its index, and what it finds. */

const store = storeForAll();

interface Result {
  address: string;
  title: string;
  heading: string;
  block: string;
}

interface Guide {
  address: string;
  title: string;
  chapters: Array<[id: string, heading: string, blocks: string[][]]>;
}

/** As a browser, which needs no key. */
async function load(path: string) {
  const { status, headers, text } = await send(store.origin, { path });
  expect([path, status, headers['content-type']]).toEqual([
    path,
    200,
    'text/javascript; charset=utf-8',
  ]);
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

let guides: Guide[];
let find: (question: string) => Result[];

beforeAll(async () => {
  ({ guides } = await load('/guide/search-index.js'));
  find = (await load('/docs/static/find.js')).searchIn(guides);
});

test.each([
  ['How do I get an API key?', 'guide/keys#'],
  ['What does 429 mean?', 'guide/errors#too_many_requests'],
  ['next page of a list', 'guide/rest#list'],
  ['int64 rounded in JavaScript', 'guide/clients#ids-beyond-253'],
  ['change the port', 'guide/configuration#port'],
  ['CORS for my frontend', 'guide/frontends#cors'],
  ['back up the database', 'guide/move#'],
  ['deploy with docker compose', 'guide/deploy#compose'],
  ['live updates of new animals', 'guide/live#live-lists'],
  ['revoke a key', 'guide/keys#rotate-revoke'],
  ['send again without creating twice', 'guide/from-rest-to-graphql#send'],
  ['pagination', 'guide/graphql#list'],
  ['401 unauthorized', 'guide/errors#unauthenticated'],
  ['rate limits', 'guide/decisions#'],
  ['IDEMPOTENCY_KEY_IN_USE', 'guide/errors#idempotency_key_in_use'],
])('%s leads to %s, among the first three', (question, address) => {
  const found = find(question).map((result) => result.address);
  expect(found.slice(0, 3)).toContainEqual(expect.stringContaining(address));
});

test('it finds parts of words, and nothing for what the guides do not have', () => {
  expect(find('idemp')[0]?.heading).toMatch(/idempotency/i);
  expect(find('zzyzx')).toEqual([]);
  expect(find(' ?! ')).toEqual([]);
  expect(find('(.*[\\')).toEqual([]);
});

test('a result has the block that fits; a row of a table has an address of its own', () => {
  expect(find('SUBSCRIPTIONS_PER_KEY')).toContainEqual(
    expect.objectContaining({
      address: 'guide/configuration#subscriptions_per_key',
      title: 'Configuration',
      block: expect.stringMatching(/^SUBSCRIPTIONS_PER_KEY · /),
    }),
  );
});

test('the index has each heading, paragraph and row of the guides as text, and each address is there', async () => {
  for (const { address, title, chapters } of guides) {
    const { text } = await send(store.origin, { path: `/${address}` });
    expect([address, chapters.length > 0]).toEqual([address, true]);
    expect(text).toContain(`<title>${title}`);
    for (const [id, heading, blocks] of chapters) {
      for (const [block = '', row = id] of [[heading], ...blocks]) {
        expect([address, row, text.includes(` id="${row}"`)]).toEqual([
          address,
          row,
          true,
        ]);
        expect(block).not.toMatch(
          /<\/?(?:p|code|a|td|span|wbr|strong)\b|&lt;|\n/,
        );
        expect(block).not.toBe('');
      }
    }
  }
  const all = guides.flatMap(({ chapters }) => chapters);
  expect(all.length).toBeGreaterThan(150);
  expect(all.map(([, heading]) => heading)).toContain('TOO_MANY_REQUESTS');
});
