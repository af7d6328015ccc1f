import { afterAll, beforeAll } from '../../support/jest.ts';
import { type Store, startStore } from '../../support/store.ts';
import { fuzz } from './fuzz.ts';
import { restRequest, sendRest } from './rest.ts';

let store: Store;
beforeAll(async () => {
  // Some requests never end; they shall not hold up the others.
  store = await startStore({ REQUEST_TIMEOUT_MS: '3000' });
});
afterAll(() => store.close());

fuzz(() => store, {
  name: 'REST requests',
  share: 0.45,
  request: restRequest,
  send: sendRest,
  show: ({ body, ...request }) => `${JSON.stringify(request)} with the body ${JSON.stringify(`${body}`.slice(0, 500))}`,
});
