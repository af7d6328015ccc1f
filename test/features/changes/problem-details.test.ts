import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** Failures as problem details (RFC 9457), for a client that asks for them. */

const store = storeForAll({}, undefined, { more: [ledgersModule] });
const problem = 'application/problem+json';
const ask = async (path: string, accept: string | undefined, more = {}) => {
  const authorization = `Bearer ${store.key}`;
  const headers = { authorization, ...(accept && { accept }), ...more };
  const {
    status,
    headers: got,
    text,
  } = await send(store.origin, {
    path,
    headers,
  });
  return { status, type: got['content-type'], vary: got.vary, text };
};
const badLimit = '/v1/pets?limit=1000';
const message = 'limit must be an integer between 1 and 100.';
const error = `{"code":"BAD_USER_INPUT","message":"${message}","status":400}`;

test('a client that asks gets problem details, with the code', async () => {
  const { status, type, vary, text } = await ask(badLimit, problem);
  expect([status, type]).toEqual([400, problem]);
  expect(vary).toMatch(/\bAccept\b/);
  expect(JSON.parse(text)).toEqual({
    title: 'Bad Request',
    detail: message,
    code: 'BAD_USER_INPUT',
    status: 400,
  });
});

test.each([
  ['/v1/pets/7', 404, 'Not Found'],
  ['/v1/nowhere', 404, 'Not Found'],
  ['/nowhere', 404, 'Not Found'],
  ['/v1/entries/9223372036854775807', 404, 'Not Found'],
])('so it does at %s', async (path, status, title) => {
  const { text, ...head } = await ask(path, `${problem}, */*;q=0.1`);
  expect(head).toMatchObject({ status, type: problem });
  expect(JSON.parse(text)).toMatchObject({ title, status });
});

test('and without a key', async () => {
  const { text, ...head } = await ask(badLimit, problem, { authorization: '' });
  expect(head).toMatchObject({ status: 401, type: problem });
  expect(JSON.parse(text)).toMatchObject({
    title: 'Unauthorized',
    code: 'UNAUTHENTICATED',
  });
});

test('further members stay', async () => {
  const path = '/v1/entries';
  const headers = {
    authorization: `Bearer ${store.key}`,
    accept: problem,
    'content-type': 'application/json',
  };
  const entry = { title: 'versioned', amount: '1', number: 1 };
  const body = JSON.stringify(entry);
  const made = await send(store.origin, {
    method: 'POST',
    path,
    headers,
    body,
  });
  const { text } = await send(store.origin, {
    method: 'PATCH',
    path: `${path}/${JSON.parse(made.text).id}`,
    headers,
    body: '{"version":7,"number":2}',
  });
  expect(JSON.parse(text)).toEqual({
    title: 'Conflict',
    detail: 'It has version 1, not 7: read it again.',
    code: 'CONFLICT',
    status: 409,
    version: 1,
  });
});

test.each([
  undefined,
  '*/*',
  'application/*',
  'application/json',
  `application/json, ${problem}`,
  `${problem};q=0.5, application/json`,
  `${problem};q=0`,
  `${problem}${';x=y'.repeat(130)}`,
  'text/event-stream',
])('others get the usual body: %s', async (accept) => {
  const { status, type, text } = await ask(badLimit, accept);
  expect(status).toBe(400);
  expect(type).toBe('application/json; charset=utf-8');
  expect(text).toBe(error);
});

test('a success is JSON', async () => {
  const { status, type } = await ask('/v1/pets', problem);
  expect([status, type]).toEqual([200, 'application/json; charset=utf-8']);
});
