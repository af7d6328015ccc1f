import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * What the longest header of a request may cost, without a key and with one:
 * hardly more than a header of the same length that is not parsed. The CPU time
 * of this thread is compared within a run, so other load does not count.
 */

const store = storeForAll({ TRUST_PROXY: 'loopback' });

/** Nearly the longest header section that Node.js accepts. */
const length = 15_900;
const filled = (unit: string, begin = '', end = '') =>
  begin +
  unit.repeat(Math.floor((length - begin.length - end.length) / unit.length)) +
  end;

const lists = [
  filled(','),
  filled('a,'),
  filled(' ,'),
  filled('x', '', ', gzip'),
  filled(' '),
  filled(';'),
  filled('"'),
];
const parameters = [
  filled('a=b;'),
  filled(' ', 'a;', 'b'),
  filled('=', 'a;q'),
  filled('\\"', 'a="'),
  filled(';q=0.1,a'),
];

const worst: Record<string, string[]> = {
  accept: [
    ...lists,
    ...parameters,
    filled(';', filled('multipart/mixed').slice(0, 7500)),
    filled(' ', 'multipart/mixed;', 'x'),
    filled('multipart/mixed; ', '', ','),
    filled('text/html,'),
    filled('*/*;q=0.1,'),
    filled('text/event-stream;'),
  ],
  'accept-encoding': [
    ...lists,
    ...parameters,
    filled('gzip;q=0.5,'),
    filled('*;q=0,'),
  ],
  'accept-charset': [...lists, ...parameters],
  prefer: [
    ...lists,
    ...parameters,
    filled(' ', 'count', '=exact'),
    filled(' ', 'count', 'b'),
    filled('=', 'count', '"b'),
    filled('count=', ''),
    filled(', count = '),
  ],
  'if-none-match': [...lists, filled('W/"a",'), filled('"')],
  // A proxy adds the address of its client, which is not trusted, and ends the
  // search.
  'x-forwarded-for': [
    ...lists,
    filled('1.'),
    filled(':'),
    filled('127.0.0.1,', '', '192.0.2.1'),
    filled('::1,', '', '::2'),
  ],
  'x-forwarded-host': [
    ...lists,
    filled('a.'),
    filled('1.'),
    filled('a:'),
    filled('[', '['),
    filled('xn--a.'),
  ],
  'x-forwarded-proto': [...lists, filled('https,')],
  'x-forwarded-prefix': [
    ...lists,
    filled('/a'),
    filled('/'),
    filled('/a', '', '<'),
  ],
  forwarded: [...lists, ...parameters, filled('for=127.0.0.1;')],
  host: [
    filled('a.'),
    filled('1.'),
    filled('a'),
    filled(':', '[', ']'),
    filled('xn--a.'),
  ],
  'content-type': [
    ...parameters.map((text) => `application/json;${text}`.slice(0, length)),
    filled('; charset='),
    filled(' ', 'application/json; charset', 'x'),
    filled(';a="', 'application/json'),
    filled('a', 'application/json; charset='),
    filled('/'),
  ],
  'content-encoding': [...lists],
  traceparent: [...lists, filled('0', '00-'), filled('-', '00')],
  'last-event-id': [...lists, filled('1'), filled('-')],
  authorization: [
    ...lists,
    filled('a', 'Bearer '),
    filled(' ', 'Bearer ', '!'),
    filled('=', 'Bearer a', '!'),
    filled('ask_'),
  ],
  'idempotency-key': [...lists, filled('\\"', '"'), filled('\\\\', '"', '"')],
  'user-agent': [...lists, filled('ask_'), filled('%25'), filled('%2525')],
  'x-request-id': [...lists, filled('ask_')],
  origin: [...lists],
};

interface Call {
  url: string;
  method?: 'POST';
  payload?: string;
}

const calls: Array<[what: string, isKnown: boolean, call: Call]> = [
  ['a list', true, { url: '/v1/pets' }],
  [
    'a GraphQL query without a key',
    false,
    { url: '/graphql?query=%7B__typename%7D' },
  ],
  ['the front page', false, { url: '/' }],
  ['a creation', true, { url: '/v1/pets', method: 'POST', payload: '{}' }],
];

/**
 * So many that the clock of CPU time, which may tick every 10 ms, is exact
 * enough.
 */
const times = 30;

/** The CPU time (ms) that this thread spends on a request. */
async function costOf(
  call: Call,
  headers: Record<string, string>,
): Promise<number> {
  const before = process.threadCpuUsage();
  for (let n = 0; n < times; n += 1)
    await store.app.inject({ ...call, headers });
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000 / times;
}

describe.each(calls)('%s costs hardly more', (what, isKnown, call) => {
  const usual: Record<string, string> = {
    ...(call.payload && { 'content-type': 'application/json' }),
  };
  let plain: number;
  beforeAll(async () => {
    if (isKnown) usual.authorization = `Bearer ${store.key}`;
    const costs: number[] = [];
    for (let n = 0; n < 5; n += 1)
      costs.push(await costOf(call, { ...usual, 'x-unknown': filled('x') }));
    plain = Math.max(...costs.slice(1));
  });

  test.each(Object.keys(worst))('with the longest %s', async (name) => {
    const dear: string[] = [];
    for (const text of worst[name] ?? []) {
      let cost = Number.POSITIVE_INFINITY;
      // A parser that passes the header once takes less. One that returned to
      // each character took 20 ms. Tried again, because the compiler and the
      // garbage collector use this thread, too.
      for (let n = 0; n < 5 && cost > 6 * plain; n += 1) {
        cost = Math.min(cost, await costOf(call, { ...usual, [name]: text }));
      }
      if (process.env.SHOWN)
        console.log(
          `${cost.toFixed(2)} ${plain.toFixed(2)} ${what} ${name} ${text.slice(0, 40)}`,
        );
      if (cost > 6 * plain)
        dear.push(
          `${text.slice(0, 40)}... ${cost.toFixed(2)} ms in place of ${plain.toFixed(2)}`,
        );
    }
    expect(dear).toEqual([]);
  });
});
