import { type Audit, serverAudits } from 'graphql-http';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * graphql-http's audits of the GraphQL-over-HTTP specification: a suite that we did not write. Every MUST and SHOULD
 * passes, and no MAY is refused, so that there is no list of refusals and their reasons.
 */

const store = storeForAll();

const audits: Audit[] = serverAudits({ url: () => `${store.origin}/graphql`, fetchFn: fetchWithKey });

test.each(audits.map(({ id, name, fn }) => [name, id, fn] as const))('%s (%s)', async (_name, _id, audit) => {
  const result = await audit();
  expect(result.status === 'ok' ? '' : result.reason).toBe('');
});

test('the suite is whole', () => {
  expect(audits.length).toBeGreaterThanOrEqual(60);
});

/** Adds what the service wants of every client: a key. By GET too it is enough (14.26). */
function fetchWithKey(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${store.key}`);
  return fetch(url, { ...init, headers });
}
