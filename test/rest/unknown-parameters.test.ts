import { Log } from '#engine/runtime/log/log.js';
import { practiceModule } from '../modules/practice/practice.module.ts';

import { operations } from '../support/contract.ts';
import { stock } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/** Unknown query parameters: ignored, and refused for who asks (RFC 7240). */

const store = storeForAll({}, () => stock(store.database, 2), {
  more: [practiceModule],
});
const lines: string[] = [];
const write = (line: string) => void lines.push(line);
const log = new Log({ level: 'info', sample: 1 }, { write });
const node = nodeForAll(store, {}, { log });
const strict = { prefer: 'handling=strict' };

test.each([
  ['/v1/pets?statuz=sold', 'statuz is unknown.'],
  [
    '/v1/pets?Status=sold&limit=1&colour=red',
    'Status is unknown; colour is unknown.',
  ],
  ['/v1/pets?__proto__=1', '__proto__ is unknown.'],
  ['/v1/pets/1?status=sold', 'status is unknown.'],
])('GET %s', async (path, message) => {
  expect((await rest(store, path)).status).toBe(200);
  const error = { code: 'BAD_USER_INPUT', message, status: 400 };
  for (const method of ['GET', 'HEAD'])
    expect(await rest(store, path, { method, headers: strict })).toMatchObject({
      status: 400,
      ...(method === 'GET' && { json: error }),
    });
});

test.each([
  ['handling=strict', 400],
  ['count=exact, Handling = "strict"', 400],
  ['handling=strict; wait=1', 400],
  ['handling=strict, handling=lenient', 400],
  ['handling=lenient, handling=strict', 200],
  ['handling=lenient', 200],
  ['handling', 200],
  ['xhandling=strict', 200],
  ['a; handling=strict', 200],
  ['a="handling=strict"', 200],
])('`Prefer: %s`: %i', async (prefer, status) => {
  const { status: found } = await rest(store, '/v1/pets?statuz=sold', {
    headers: { prefer },
  });
  expect(found).toBe(status);
});

test('known parameters, a creation and a total are served as usual', async () => {
  const counted = await rest(store, '/v1/pets?limit=1&sort=id&after=1', {
    headers: { prefer: 'handling=strict, count=exact' },
  });
  expect(counted).toMatchObject({
    status: 200,
    headers: {
      'x-total-count': '2',
      'preference-applied': 'handling=strict, count=exact',
      vary: expect.stringContaining('Prefer'),
    },
  });
  const json = { name: 'Rex', categoryId: 1 };
  const created = { method: 'POST', json, headers: strict };
  expect(await rest(store, '/v1/pets', created)).toMatchObject({ status: 201 });
  expect(await rest(store, '/v1/pets?x=1', created)).toMatchObject({
    status: 400,
    json: { message: 'x is unknown.' },
  });
});

test.each([
  ['/v1/pets', { name: 'a', categoryId: 1, stauts: 'sold' }, 'stauts'],
  ['/v1/pets', { name: 'a', categoryId: 1, id: 5 }, 'id'],
  ['/v1/tags', { name: 'a', x: { y: 1 } }, 'x'],
  ['/v1/treatments/batch', { inputs: [{}, { x: 1 }] }, 'inputs[1].x'],
  ['/v1/treatments/batch', { inputs: [], x: 1 }, 'x'],
])('an unknown member of a body, %s %j', async (path, json, name) => {
  const method = 'POST';
  const refused = await rest(store, path, { method, json, headers: strict });
  expect(refused).toMatchObject({
    status: 400,
    json: { message: `${name} is unknown.` },
  });
  expect(refused.headers).not.toHaveProperty('preference-applied');
});

test('unknown members of a large body are named in part', async () => {
  const members = Array.from({ length: 5000 }, (_, at) => [`a${at}`, 1]);
  const { json } = await rest(store, '/v1/pets', {
    ...{ method: 'POST', json: Object.fromEntries(members), headers: strict },
  });
  expect(json.message).toMatch(/^a0 is unknown; .*a19 is unknown\.$/);
});

test.each([
  ['handling=strict, tx=commit', 'tx=commit is unknown.'],
  ['Return = "minimal"; x=1, handling=strict', 'return=minimal is unknown.'],
  ['handling=strict, count=estimated', 'count=estimated is unknown.'],
  ['handling=strict, respond-async', 'respond-async is unknown.'],
])('`Prefer: %s` is refused, and nothing is created', async (prefer, words) => {
  const name = `strict ${prefer}`;
  const refused = await rest(store, '/v1/pets', {
    method: 'POST',
    json: { name, categoryId: 1 },
    headers: { prefer },
  });
  expect(refused).toMatchObject({
    status: 400,
    json: { message: expect.stringContaining(words) },
  });
  expect(refused.headers).not.toHaveProperty('preference-applied');
  const { json } = await rest(store, '/v1/pets');
  expect(json).not.toContainEqual(expect.objectContaining({ name }));
});

test('a preference that the service does not know is not confirmed', async () => {
  for (const prefer of ['tx=rollback', 'handling=strict, tx=rollback']) {
    const { headers } = await rest(store, '/v1/pets', { headers: { prefer } });
    expect(headers['preference-applied'] ?? '').not.toContain('tx');
  }
});

test('the log names some of them, and none that may hold a secret', async () => {
  const names = Array.from({ length: 9 }, (_, at) => `x${at}`);
  const query = ['limit=1', 'a%22b=1', ...names.map((name) => `${name}=1`)];
  await rest(node, `/v1/pets?${query.join('&')}`);
  await rest(node, '/v1/pets?limit=1');
  await new Promise((resolve) => setImmediate(resolve));
  const [first, second] = lines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'answered');
  expect(first).toMatchObject({ unknown: names.slice(0, 4), status: 200 });
  expect(second).not.toHaveProperty('unknown');
});

test('the key is asked for first', async () =>
  expect(
    await rest(store, '/v1/pets?statuz=sold', {
      headers: { ...strict, authorization: '' },
    }),
  ).toMatchObject({ status: 401 }));

test('the contract of a list names it', () => {
  const prefer = operations
    .flatMap(({ parameters = [] }) => parameters)
    .find(({ name }) => name === 'Prefer');
  expect(prefer?.description).toContain('`handling=strict`');
});
