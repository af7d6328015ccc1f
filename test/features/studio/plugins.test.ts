import type {
  ApolloServerPlugin,
  GraphQLRequestContext,
  GraphQLRequestListener,
} from '@apollo/server';
import { GraphQLError } from 'graphql';
import type { GraphQLContext } from '#engine/api/graphql/context.js';
import { studio, studioWith } from '#engine/features/studio/index.js';
import { features } from '../../../src/features.ts';
import { stockNames } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import {
  nodeForAll,
  type ServiceNode,
  startNode,
  storeForAll,
} from '../../support/store.ts';

/**
 * Plugins of Apollo Server. In the run `plugins` suites of the core test that a
 * plugin changes no response.
 */

const store = storeForAll();

/** The hooks of the plugin that ran, in order. */
let hooksRun: string[] = [];
let last: GraphQLRequestContext<GraphQLContext>;
const watching: ApolloServerPlugin<GraphQLContext> = {
  async requestDidStart(context) {
    last = context;
    const { http, query } = context.request;
    hooksRun.push(
      `request ${http?.method} ${http?.headers.get('x-from')} ${query}`,
    );
    return {
      didResolveSource: async () => void hooksRun.push('source'),
      parsingDidStart: async () => void hooksRun.push('parsing'),
      validationDidStart: async () => void hooksRun.push('validation'),
      didResolveOperation: async ({ operationName }) =>
        void hooksRun.push(`operation ${operationName}`),
      didEncounterErrors: async ({ errors }) =>
        void hooksRun.push(`errors ${errors.map(({ message }) => message)}`),
      executionDidStart: async () => ({
        willResolveField: ({ info }) => {
          hooksRun.push(`field ${info.parentType.name}.${info.fieldName}`);
        },
        executionDidEnd: async () => void hooksRun.push('executed'),
      }),
      willSendResponse: async ({ response }) => {
        hooksRun.push('response');
        response.http.headers.set('x-watched', 'yes');
        if (response.body.kind === 'single')
          response.body.singleResult.extensions = { watched: true };
      },
    };
  },
};

const withPlugin = (plugin: ApolloServerPlugin<GraphQLContext>) =>
  features.map((one) => (one === studio ? studioWith(plugin) : one));

const node = nodeForAll(store, {}, { parts: withPlugin(watching) });
beforeEach(async () => {
  await store.empty();
  await stockNames(store.database, ['Rex']);
});

test('a plugin sees the request, each stage, each field and the response, at every use of a document', async () => {
  const query = 'query Names($limit: Int) { pets(limit: $limit) { name } }';
  const stages = [
    'operation Names',
    'field Query.pets',
    'field Pet.name',
    'executed',
    'response',
  ];
  for (const parsed of [['parsing', 'validation'], [], []]) {
    hooksRun = [];
    const response = await graphqlText(
      node,
      { query, variables: { limit: 5 } },
      node.key,
      { 'x-from': 'test' },
    );
    expect(response).toMatchObject({
      status: 200,
      data: { pets: [{ name: 'Rex' }] },
      extensions: { watched: true },
    });
    expect(response.headers['x-watched']).toBe('yes');
    expect(hooksRun).toEqual([
      `request POST test ${query}`,
      'source',
      ...parsed,
      ...stages,
    ]);
  }
  expect(last.queryHash).toMatch(/^[0-9a-f]{64}$/);
  expect(last.request.extensions).toBeUndefined();
  expect(last.contextValue.call.caller).toMatchObject({
    id: expect.any(Number),
  });
  const path = '/graphql?query={__typename}';
  expect(
    (
      await send(node.origin, {
        path,
        headers: { authorization: `Bearer ${node.key}` },
      })
    ).status,
  ).toBe(200);
  expect(last.request.http).toMatchObject({
    method: 'GET',
    search: '?query={__typename}',
  });
});

test('with a plugin variables are exact, and a repeated creation is replayed', async () => {
  const query =
    'mutation Add($id: ID!) { createPet(input: { name: "Tom", categoryId: $id }) { id categoryId } }';
  const body = `{"query":${JSON.stringify(query)},"variables":{"id":9007199254740993}}`;
  const add = () =>
    graphqlText(node, body, node.key, { 'idempotency-key': 'plugins' });
  const [first, again] = [await add(), await add()];
  expect(first.text).toContain('"categoryId":"9007199254740993"');
  expect([again.headers['idempotent-replayed'], again.text]).toEqual([
    'true',
    first.text,
  ]);
});

/** Runs work on a node that has a plugin with these hooks. */
async function withHooks(
  hooks: GraphQLRequestListener<GraphQLContext>,
  work: (node: ServiceNode) => Promise<void>,
) {
  const parts = withPlugin({ requestDidStart: async () => hooks });
  const node = await startNode(store, {}, { parts });
  await work(node).finally(() => node.close());
}

test('a plugin may refuse an operation, also a subscription, with a message and a code of its own', async () => {
  const didResolveOperation = () =>
    Promise.reject(
      new GraphQLError('not today', {
        extensions: { code: 'CLOSED', http: { status: 418 } },
      }),
    );
  await withHooks({ didResolveOperation }, async (node) => {
    const errors = [
      { message: 'not today', extensions: { code: 'CLOSED', status: 400 } },
    ];
    expect(await graphqlText(node, { query: '{ pets { id } }' })).toMatchObject(
      { status: 418, errors },
    );
    const query = 'subscription { petAdded { id } }';
    const headers = {
      accept: 'text/event-stream',
      authorization: `Bearer ${node.key}`,
    };
    expect((await graphqlText(node, { query }, node.key, headers)).status).toBe(
      418,
    );
    const path = `/graphql?${new URLSearchParams({ query })}`;
    expect((await send(node.origin, { path, headers })).status).toBe(418);
  });
});

test('the failure of a plugin is an internal error', async () => {
  await withHooks(
    { willSendResponse: () => Promise.reject(new Error('secret')) },
    async (node) => {
      const response = await graphqlText(node, { query: '{ pets { id } }' });
      expect(response).toMatchObject({
        status: 500,
        errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
      });
      expect(response.text).not.toContain('secret');
    },
  );
});

test('with a plugin an operation that the document lacks is refused as without one', async () => {
  const query = 'query A { __typename } query B { __typename }';
  for (const operationName of [undefined, 'C']) {
    const response = await graphqlText(node, { query, operationName });
    expect(response.errors?.[0]?.extensions).toEqual({
      code: 'BAD_USER_INPUT',
      status: 400,
    });
  }
});
