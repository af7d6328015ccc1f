import { GraphQLError } from 'graphql';
import { studio, studioWith } from '#engine/features/studio/index.js';
import { features } from '../../../src/features.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { onNode, type ServiceNode, storeForAll } from '../../support/store.ts';

const store = storeForAll();

test('a plugin may refuse an operation while it is being charged', async () => {
  const extensions = { code: 'CLOSED', http: { status: 418 } };
  const refusing = studioWith({
    requestDidStart: async () => ({
      didResolveOperation: () =>
        Promise.reject(new GraphQLError('not today', { extensions })),
    }),
  });
  const parts = features.map((one) => (one === studio ? refusing : one));
  const work = async (node: ServiceNode) =>
    expect(await graphqlText(node, { query: '{ __typename }' })).toMatchObject({
      status: 418,
      errors: [{ message: 'not today', extensions: { code: 'CLOSED' } }],
    });
  await onNode(store, { QUOTA_PER_MINUTE: '100' }, work, { parts });
});
