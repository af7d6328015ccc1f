import { storeForAll } from '../../support/store.ts';
import { fuzz } from './fuzz.ts';
import { graphqlRequest, sendGraphQL } from './graphql.ts';

const store = storeForAll();

fuzz(() => store, {
  name: 'GraphQL requests',
  share: 0.45,
  request: graphqlRequest,
  send: sendGraphQL,
  show: ({ body, ...request }) => `${JSON.stringify(request)} with the body ${`${body}`.slice(0, 2000)}`,
});
