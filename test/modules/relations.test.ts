// runs: embedded, postgres

import { setTimeout as sleep } from 'node:timers/promises';
import { Log } from '#engine/runtime/log/log.js';
import { features } from '../../src/features.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { relationsForAll } from '../support/relations.ts';
import { onNode, startNode } from '../support/store.ts';

/**
 * Fields below the root that read animals: their cost is limited.
 */

const store = relationsForAll();

test('relations are resolved on every level', async () => {
  const { data } = await graphqlText(store, {
    query:
      '{ pets(limit: 2) { id friend { id } friends(limit: 1) { id friends(limit: 2) { id } } } }',
  });
  const friends = [{ id: '1', friends: [{ id: '1' }, { id: '2' }] }];
  expect(data.pets).toEqual(
    ['1', '2'].map((id) => ({ id, friend: { id }, friends })),
  );
});

describe('the cost of an operation is the product along its path', () => {
  test.each<[number, string, Record<string, unknown>?]>([
    [1 + 10 * (1 + 1), '{ pets(limit: 10) { id friend { id } } }'],
    [
      1 + 10 * (1 + 2),
      '{ pets(limit: 10) { a: friend { id } b: friend { id } } }',
    ],
    [
      1 + 10 * (2 + 9 * (2 + 8)),
      '{ pets(limit: 10) { friends(limit: 9) { friends(limit: 8) { id } } } }',
    ],
    [
      1 + 10 * (1 + 1 + 50),
      'query ($n: Int = 20) { pets(limit: 10) { friends(limit: $n) { id } } }',
      { n: 50 },
    ],
    [
      1 + 10 * (1 + 1 + 100),
      '{ petsConnection(first: 10) { edges { node { friends(limit: 100) { id } } } } }',
    ],
    [
      1 + 10,
      '{ petsConnection(first: 10) { edges { cursor node { id } } pageInfo { endCursor } } }',
    ],
  ])('%i: %s', async (cost, query, variables = {}) => {
    await onNode(store, { GRAPHQL_MAX_COST: `${cost - 1}` }, async (node) => {
      for (let time = 1; time <= 2; time += 1) {
        const { errors } = await graphqlText(node, { query, variables });
        const [, root] = /\{ (\w+)\(/.exec(query) ?? [];
        const message = `The operation may cost too much: ${cost}, at most ${cost - 1}. Most of it is ${root}. Ask for fewer fields or smaller pages.`;
        expect(errors).toMatchObject([
          { message, extensions: { code: 'QUERY_TOO_COSTLY', status: 400 } },
        ]);
      }
    });
    await onNode(store, { GRAPHQL_MAX_COST: `${cost}` }, async (node) => {
      expect(
        (await graphqlText(node, { query, variables })).errors,
      ).toBeUndefined();
    });
  });
});

test('what is made for a client that has left does not count as unread', async () => {
  const { app, database } = store;
  const { read } = database;
  const wanted = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  database.read = async (...statement) => {
    if (statement[0].name.startsWith('find')) {
      wanted.resolve();
      await proceed.promise;
    }
    return read.apply(database, statement) as never;
  };
  const query = 'subscription { petAdded(after: "4") { friend { id } } }';
  const stream = await openStream(store, { body: { query } });
  await wanted.promise;
  stream.close();
  await eventually(async () => app.subscriptions.count === 0);
  // The last count of unread bytes.
  await sleep(200);
  proceed.resolve();
  await sleep(50);
  database.read = read;
  expect(app.unread.budget.used).toBe(0);
});

test.each([
  ['with all parts', features],
  ['by the core alone', []],
])(
  'a value that its scalar refuses is an internal error, and the log has its cause (executed %s)',
  async (_how, parts) => {
    const lines: string[] = [];
    const log = new Log(
      { level: 'info', sample: 1 },
      { write: (line: string) => void lines.push(line) },
    );
    const { app, close } = await startNode(store, {}, { parts, log });
    for (let time = 1; time <= 3; time += 1) {
      lines.length = 0;
      const headers = { authorization: `Bearer ${store.key}` };
      const body = { query: '{ pets(limit: 1) { beyond } }' };
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        headers,
        body,
      });
      const extensions = { code: 'INTERNAL_SERVER_ERROR', status: 500 };
      expect(response.json()).toMatchObject({
        data: null,
        errors: [{ path: ['pets', 0, 'beyond'], extensions }],
      });
      const failure = lines
        .map((line) => JSON.parse(line))
        .find(({ err }) => err !== undefined);
      expect(failure).toMatchObject({
        level: 50,
        reqId: response.headers['x-request-id'],
      });
      expect(failure.err.message).toContain(
        'Int cannot represent non 32-bit signed integer value',
      );
    }
    await close();
  },
);
