// runs: embedded, postgres, pgbouncer

import { hash } from 'node:crypto';
import { rawJSON } from '@animal-store/exact-json';
import { Type } from 'typebox';
import { Call } from '#engine/call.js';
import { namingAllFaults } from '#engine/errors.js';
import { Records } from '#engine/records/records.js';
import { listQuery } from '#engine/validation/list-query.js';
import { textSchema } from '#engine/validation/schemas.js';
import {
  chip,
  expected,
  inputs,
  members,
  type NewPassport,
  nested,
  others,
  type Passport,
  PassportEntity,
  passport,
  passports,
  plain,
  spare,
} from '../modules/passports/passports.module.ts';
import { sql } from '../support/database-access.ts';
import { openStream, streamsForEach } from '../support/events.ts';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { fromJson, send, toJson } from '../support/http.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Members that are a UUID, a day, any JSON, or texts. */

const store = storeForAll({}, undefined, { more: [passports] });
const closedAfterwards = streamsForEach(store);
beforeEach(() => sql(store.database, 'truncate "passport" restart identity'));

const overRest = (json: object, headers = {}) =>
  rest(store, '/v1/passports', { method: 'POST', json, headers });
const overGraphQL = (input: object) =>
  graphqlText(store, {
    query: `mutation ($input: NewPassport!) { createPassport(input: $input) { ${members} } }`,
    variables: { input },
  });

const byChip = (one: unknown, other: unknown) =>
  JSON.stringify((one as Passport).chip) <
  JSON.stringify((other as Passport).chip)
    ? -1
    : 1;

async function listed(): Promise<unknown[]> {
  const { json } = await rest(store, '/v1/passports?limit=100');
  const { data } = await graphqlThrice(store, {
    query: `{ passports(limit: 100) { ${members} } }`,
  });
  const items = json.map(({ id, ...item }: { id: number }) => ({ ...item }));
  const inGraphQL = data.passports.map(
    ({ id: _, ...item }: { id: string }) => item,
  );
  expect(inGraphQL).toEqual(items);
  return items;
}

test('values are read as they were written, in both APIs', async () => {
  for (const [at, input] of inputs.entries()) {
    const created = await overRest(input);
    const item = { ...expected[at], id: at + 1 };
    expect([created.status, created.json]).toEqual([201, item]);
    // The creation and the item have the same bytes.
    const { text } = await rest(store, `/v1/passports/${at + 1}`);
    expect(text).toBe(created.text);
  }
  expect(await listed()).toEqual(expected);
});

test('values that are written together are read as they were written', async () => {
  await Promise.all(inputs.map((input) => overRest(input)));
  expect((await listed()).toSorted(byChip)).toEqual(expected.toSorted(byChip));
});

test('values are the same from GraphQL, and are found by their key', async () => {
  const keyed = (input: object, at: number) =>
    at % 2
      ? overGraphQL(input)
      : overRest(input, { 'idempotency-key': `key-of-${at}` });
  const made = await Promise.all(inputs.map(keyed));
  expect((await listed()).toSorted(byChip)).toEqual(expected.toSorted(byChip));
  const again = await Promise.all(inputs.map(keyed));
  for (const [at, { text, headers }] of again.entries()) {
    if (at % 2) continue;
    expect(headers['idempotent-replayed']).toBe('true');
    expect(text).toBe(made[at]?.text);
  }
});

test('a transaction repeats JSON with its integers, dates and nothing else changed', async () => {
  const once = async () => {
    const call = new Call();
    const key = hash('sha256', 'once', 'buffer');
    call.claim = { keyId: 0, operation: 'createPassports', hash: key };
    const data = {
      most: rawJSON('9223372036854775807'),
      lists: [[rawJSON('-9223372036854775808')], null, { rawJSON: '1' }],
    };
    const input = { ...plain, data };
    const frame = { creates: [PassportEntity], input };
    const records = new Records<Passport, NewPassport>(
      store.database,
      PassportEntity,
      passport.lists,
    );
    const answer = await store.database.transaction(call, frame, async () => ({
      made: await records.create(input as never, call),
      at: new Date(0),
      total: 9007199254740993n,
      kinds: new Set(['day']),
    }));
    return { answer, isReplay: call.isReplay };
  };
  const first = await once();
  const again = await once();
  expect([first.isReplay, again.isReplay]).toEqual([false, true]);
  const { made, ...others } = again.answer;
  expect(others).toEqual({
    at: new Date(0),
    total: 9007199254740993n,
    kinds: new Set(['day']),
  });
  expect(JSON.stringify(made)).toBe(JSON.stringify(first.answer.made));
  expect(JSON.stringify(made)).toContain('[-9223372036854775808]');
});

test('values are set by changes, in both APIs', async () => {
  await Promise.all(
    inputs.map((_, at) => overRest({ ...plain, chip: spare(at) })),
  );
  const query = `mutation ($id: ID!, $c: PassportChange!) { changePassport(id: $id, change: $c) { version } }`;
  await Promise.all(
    inputs.map((input, at) =>
      at % 2
        ? graphqlText(store, {
            query,
            variables: { id: at + 1, c: { ...input, version: 1 } },
          })
        : rest(store, `/v1/passports/${at + 1}`, {
            method: 'PATCH',
            json: { ...input, version: 1 },
          }),
    ),
  );
  const changed = expected.map((item) => ({ ...item, version: 2 }));
  expect(await listed()).toEqual(changed);
});

const uuidFault = `chip must be a UUID like ${chip}`;
const jsonFault =
  'data must be JSON of at most 8000 characters and 32 levels, with exact numbers, and free of U+0000 and of lone surrogates, or null';
const dayFault = 'an existing date like 2030-12-05';
const noDay = 'an existing date like 2030-12-05';
const markFault = 'marks must be 0 to 3 values, each a string';

test.each<[json: string, message: string]>([
  [`{"chip":"${chip}0"}`, `${uuidFault}.`],
  [`{"chip":"{${chip}}"}`, `${uuidFault}.`],
  [`{"chip":"urn:uuid:${chip}"}`, `${uuidFault}.`],
  [`{"chip":"${chip.replaceAll('-', '')}"}`, `${uuidFault}.`],
  [`{"chip":"${chip}\\n"}`, `${uuidFault}.`],
  [`{"chip":""}`, `${uuidFault}.`],
  [`{"chip":5}`, `${uuidFault}, not a number.`],
  [`{"bornOn":"2026-02-30"}`, `bornOn must be ${noDay}, or null.`],
  [`{"issuedOn":"2026-02-30"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"2025-02-29"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"1900-02-29"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"2026-13-01"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"2026-00-10"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"0000-01-01"}`, `issuedOn must be ${noDay}.`],
  [`{"issuedOn":"10000-01-01"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"-0001-01-01"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"2026-1-1"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"20260101"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"2026-01-01T00:00:00Z"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"2026-01-01\\n"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":" 2026-01-01"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"٢٠٢٦-01-01"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"infinity"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":"today"}`, `issuedOn must be ${dayFault}.`],
  [`{"issuedOn":20260101}`, `issuedOn must be ${dayFault}, not a number.`],
  [`{"data":"\\u0000"}`, `${jsonFault}.`],
  [`{"data":{"a\\u0000":1}}`, `${jsonFault}.`],
  [`{"data":["\\ud800"]}`, `${jsonFault}.`],
  [`{"data":{"\\udfff":1}}`, `${jsonFault}.`],
  [`{"data":[1e400]}`, `${jsonFault}.`],
  [`{"data":1.00000000000000000001}`, `${jsonFault}.`],
  [`{"data":0.1234567890123456789}`, `${jsonFault}.`],
  [`{"data":{"a":[-12.345678901234567890]}}`, `${jsonFault}.`],
  [`{"data":[1e-400]}`, `${jsonFault}.`],
  [`{"data":-4.9e-324}`, `${jsonFault}.`],
  [`{"data":${toJson(nested(34, 1))}}`, `${jsonFault}.`],
  [`{"data":"${'x'.repeat(7999)}"}`, `${jsonFault}.`],
  [`{"data":{"${'x'.repeat(8000)}":1}}`, `${jsonFault}.`],
  [`{"data":${'9'.repeat(8001)}}`, `${jsonFault}.`],
  // PostgreSQL writes numbers without an exponent.
  [`{"data":[${'5e-324,'.repeat(1000)}0]}`, `${jsonFault}.`],
  [`{"data":[${'-1.5e-300,'.repeat(27)}0]}`, `${jsonFault}.`],
  [`{"data":{"a":[${'1e308,'.repeat(26)}0]}}`, `${jsonFault}.`],
  [`{"marks":["a","b","c","d"]}`, `${markFault}.`],
])('%s is refused, in the same words by both APIs', async (json, message) => {
  const text = `${JSON.stringify(plain).slice(0, -1)},${json.slice(1)}`;
  const refused = await send(store.origin, {
    method: 'POST',
    path: '/v1/passports',
    headers: {
      authorization: `Bearer ${store.key}`,
      'content-type': 'application/json',
    },
    body: text,
  });
  const error = { code: 'BAD_USER_INPUT', status: 400, message };
  expect(fromJson(refused.text)).toEqual(error);
  const query = `mutation ($input: NewPassport!) { createPassport(input: $input) { id } }`;
  const answer = await graphqlText(
    store,
    `{"query":${JSON.stringify(query)},"variables":{"input":${text}}}`,
  );
  expect(answer.errors?.[0]?.message).toBe(message);
});

test.each([
  [
    '{ "__proto__": 1, "b": 2 }',
    '{ __proto__: 1, b: 2 }',
    { ['__proto__']: 1, b: 2 },
  ],
  [
    '[{ "constructor": { "prototype": 1 } }]',
    '[{ constructor: { prototype: 1 } }]',
    [{ constructor: { prototype: 1 } }],
  ],
  [
    '{ "constructor": { "a": 1 } }',
    '{ constructor: { a: 1 } }',
    { constructor: { a: 1 } },
  ],
  [
    '[-0, -0.0, 0.10, 1e2, 0.30000000000000004, 5e-324, 1.5e-7]',
    '[-0, -0.0, 0.10, 1e2, 0.30000000000000004, 5e-324, 1.5e-7]',
    [0, 0, 0.1, 100, 0.30000000000000004, 5e-324, 1.5e-7],
  ],
])('%s is stored as it is, in both APIs', async (json, literal, data) => {
  const text = JSON.stringify(plain).slice(0, -1);
  const { json: item } = await rest(store, '/v1/passports', {
    method: 'POST',
    body: `${text}, "data": ${json} }`,
  });
  expect(item.data).toEqual(data);
  const input = `chip: "${spare(1)}", issuedOn: "2026-11-28", marks: [], data: ${literal}`;
  const query = `mutation { createPassport(input: { ${input} }) { data } }`;
  const answer = await graphqlText(store, { query });
  expect(answer.data).toEqual({ createPassport: { data } });
});

test('numbers that another program has stored keep their digits', async () => {
  const { text } = await overRest(plain);
  const digits = '[0.1234567890123456789,100000000000000000000.5]';
  await sql(store.database, `update "passport" set data = '${digits}'`);
  const { text: found } = await rest(store, '/v1/passports/1');
  expect(found).toBe(text.replace('"data":null', `"data":${digits}`));
  const query = '{ passports { data } }';
  for (const answer of [1, 2, 3].map(() => graphqlText(store, { query })))
    expect((await answer).text).toContain(`"data":${digits}`);
});

test('lists are filtered and sorted by UUIDs and days, in both APIs', async () => {
  const days = ['2024-02-29', '2024-03-01', '2023-12-31', '2024-02-29'];
  for (const [at, issuedOn] of days.entries()) {
    const bornOn = at > 1 ? null : '2020-01-01';
    await overRest({ ...plain, chip: others(31 + at), issuedOn, bornOn });
  }
  for (const [query, parameters, ids] of [
    [`chip=${others(32)}`, `chip: "${others(32)}"`, [2]],
    [
      `chip=${others(32).toUpperCase()}`,
      `chip: "${others(32).toUpperCase()}"`,
      [2],
    ],
    [
      `chip_in=${others(33)}&chip_in=${others(31)}&chip_in=${others(31)}`,
      `chip_in: ["${others(33)}", "${others(31)}"]`,
      [1, 3],
    ],
    ['bornOn=2020-01-01', 'bornOn: "2020-01-01"', [1, 2]],
    ['bornOn_is_null=true', 'bornOn_is_null: true', [3, 4]],
    ['issuedOn_gte=2024-02-29', 'issuedOn_gte: "2024-02-29"', [1, 4, 2]],
    ['issuedOn_gt=2024-02-29', 'issuedOn_gt: "2024-02-29"', [2]],
    ['issuedOn_lt=2024-03-01', 'issuedOn_lt: "2024-03-01"', [3, 1, 4]],
    ['sort=issuedOn_desc', 'sort: issuedOn_desc', [2, 4, 1, 3]],
    [
      'issuedOn_lte=2024-02-29&bornOn=2020-01-01',
      'issuedOn_lte: "2024-02-29", bornOn: "2020-01-01"',
      [1],
    ],
  ] as Array<[string, string, number[]]>) {
    const { json } = await rest(store, `/v1/passports?${query}`);
    expect(json.map(({ id }: { id: number }) => id)).toEqual(ids);
    const { data } = await graphqlThrice(store, {
      query: `{ passports(${parameters}) { id } passportsConnection(${parameters}) { totalCount } }`,
    });
    expect(data.passports.map(({ id }: { id: string }) => +id)).toEqual(ids);
    expect(data.passportsConnection.totalCount).toBe(ids.length);
  }
  // The cursor of a day continues its list.
  const first = await rest(store, '/v1/passports?sort=issuedOn&limit=2');
  const [, next] = /<[^/]+\/\/[^/]+([^>]+)>; rel="next"/.exec(
    `${first.headers.link}`,
  ) ?? [''];
  const { json } = await rest(store, `${next}`);
  expect(json.map(({ id }: { id: number }) => id)).toEqual([4, 2]);
});

test('the contract says that only true asks for null, and that a creation meets unique values', async () => {
  const { text } = await send(store.origin, { path: '/v1/openapi.json' });
  const { paths, components } = JSON.parse(text);
  const { get, post } = paths['/passports'];
  const of = ({ name }: { name: string }) => name === 'bornOn_is_null';
  expect(get.parameters.find(of).description).toBe(
    'Return only passports without bornOn; it has no other value than true.',
  );
  const name = post.responses['409'].$ref.split('/').at(-1);
  expect(components.responses[name].description).toContain(
    'or another item has a value that is unique',
  );
});

test.each([
  ['issuedOn_gte=2026-02-30', `issuedOn_gte must be ${noDay}.`],
  ['issuedOn_lt=soon', `issuedOn_lt must be ${dayFault}.`],
  ['bornOn=2025-02-29', `bornOn must be ${noDay}.`],
  ['chip=7', `${uuidFault}.`],
])('a list of %s is refused', async (query, message) => {
  const { status, json } = await rest(store, `/v1/passports?${query}`);
  expect([status, json.message]).toEqual([400, message]);
  const [name, value] = query.split('=');
  const { errors } = await graphqlText(store, {
    query: `{ passports(${name}: "${value}") { id } }`,
  });
  expect(errors?.[0]?.message).toBe(message);
});

test('a literal of GraphQL has the JSON that it spells, with variables in it', async () => {
  const { data } = await graphqlText(store, {
    query: `mutation ($n: JSON, $none: JSON) { createPassport(input: { chip: "${chip}", issuedOn: "2026-11-28", marks: "one",
      data: { big: 9223372036854775807, list: [-9007199254740993, 1.5, "a\\"b", """c "d" """, true, null, word, $n], none: $none } }) { data marks } }`,
    variables: { n: { deep: 9007199254740995n } },
  });
  expect(data.createPassport).toEqual({
    data: {
      big: 9223372036854775807n,
      list: [
        ...[-9007199254740993n, 1.5, 'a"b', 'c "d" ', true, null, 'word'],
        { deep: 9007199254740995n },
      ],
    },
    marks: ['one'],
  });
});

test('no member of JSON is a prototype, in both APIs', async () => {
  const own = '{"a":1,"__proto__":{"b":2}}';
  const text = `${JSON.stringify(plain).slice(0, -1)},"data":${own}}`;
  const created = await send(store.origin, {
    method: 'POST',
    path: '/v1/passports',
    headers: {
      authorization: `Bearer ${store.key}`,
      'content-type': 'application/json',
    },
    body: text,
  });
  expect(fromJson(created.text)).toMatchObject({
    data: { a: 1, ['__proto__']: { b: 2 } },
  });
  const { data } = await graphqlText(store, {
    query: `mutation { createPassport(input: { chip: "${others(41)}", issuedOn: "2026-11-28", marks: [],
      data: { a: 1, __proto__: { b: 2 } } }) { data } }`,
  });
  expect(data.createPassport).toEqual({
    data: { a: 1, ['__proto__']: { b: 2 } },
  });
});

test('null clears what may be null, and JSON is replaced as a whole', async () => {
  await overRest({ ...plain, bornOn: '2020-01-01', data: { a: 1 } });
  const change = (json: object) =>
    rest(store, '/v1/passports/1', { method: 'PATCH', json });
  const replaced = await change({ version: 1, data: { b: 2 } });
  expect(replaced.json).toMatchObject({ data: { b: 2 }, bornOn: '2020-01-01' });
  const cleared = await change({ version: 2, data: null, bornOn: null });
  expect(cleared.json).toMatchObject({ data: null, bornOn: null });
});

test('a live list has the same values, in both APIs', async () => {
  const data = { n: 9007199254740993n };
  const { json } = await overRest({ ...plain, data, bornOn: '2024-02-29' });
  const query = `subscription { passportAdded(after: "0", chip: "${chip}") { ${members} } }`;
  const path = `/v1/passports?after=0&chip=${chip}`;
  const streams = [
    await closedAfterwards(openStream(store, { method: 'GET', path })),
    await closedAfterwards(openStream(store, { body: { query } })),
  ];
  const [[ofRest] = [], [ofGraphQL] = []] = await Promise.all(
    streams.map((stream) => stream.until(1)),
  );
  expect(ofRest?.data).toEqual(json);
  const passportAdded = { ...json, id: '1' };
  expect(ofGraphQL?.data).toEqual({ data: { passportAdded } });
});

test('MikroORM reads the same values', async () => {
  const data = { n: 9007199254740993n };
  await overRest({ ...plain, data, bornOn: '2024-02-29' });
  const found = await store.database.transaction(
    Call.ofOperator(),
    { creates: [], input: {} },
    (em) => em.find(PassportEntity, {}),
  );
  const [{ chip: read, bornOn, marks, data: held } = {} as never] = found;
  expect([read, bornOn, marks]).toEqual([chip, '2024-02-29', ['white']]);
  expect(JSON.stringify(held)).toBe('{"n":9007199254740993}');
});

test.each([
  [{ filters: ['data'] }, 'data, which cannot be compared.'],
  [{ orders: ['marks'] }, 'marks, which cannot be compared.'],
  [{ prefixes: ['data'] }, 'data, which cannot be compared.'],
  [{ filters: ['id'] }, 'id, which all of them are sorted by.'],
  [{ in: ['id'] }, 'id, which all of them are sorted by.'],
  [{ orders: ['id'] }, 'id, which all of them are sorted by.'],
  [{ ranges: ['id'] }, 'id, which all of them are sorted by.'],
])('the service does not start with a list by %j', async (lists, fault) => {
  const build = async () =>
    void listQuery('passport', passport.schemas.item, lists as never);
  await expect(namingAllFaults(build)).rejects.toThrow(
    `The lists of passports name ${fault}`,
  );
});

test.each(['orders', 'ranges', 'prefixes'])(
  'the service does not start with %s by a name of another order',
  async (option) => {
    const name_desc = textSchema({ description: 'x' });
    const item = Type.Object({ name_desc });
    const build = async () =>
      void listQuery('toy', item, { [option]: ['name_desc'] });
    await expect(namingAllFaults(build)).rejects.toThrow(
      'No list is sorted by name_desc: it names another order.',
    );
  },
);

test('the service does not start with a prefix of what is no text', async () => {
  const lists = { prefixes: ['chip'] } as never;
  const build = async () =>
    void listQuery('passport', passport.schemas.item, lists);
  await expect(namingAllFaults(build)).rejects.toThrow(
    'No chip of passports has a beginning: it is no text.',
  );
});
