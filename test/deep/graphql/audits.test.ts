import { type Audit, serverAudits } from 'graphql-http';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * graphql-http's audits of the GraphQL-over-HTTP specification, which we did
 * not write. They test the draft of 2023, which had no 422. `changed` lists the
 * rules that the edition of September 2026 changed; http-status.test.ts tests
 * them.
 */
const changed = new Map([
  ['423L', 'MAY use 400 status code on missing {query} parameter'],
  [
    '86EE',
    'SHOULD use a status code of 400 on variable coercion failure when accepting application/graphql-response+json',
  ],
]);

const store = storeForAll();

const audits: Audit[] = serverAudits({
  url: () => `${store.origin}/graphql`,
  fetchFn: fetchWithKey,
});

test.each(audits.map(({ id, name, fn }) => [name, id, fn] as const))(
  '%s (%s)',
  async (name, id, audit) => {
    const result = await audit();
    const expected =
      changed.get(id) === name ? 'Response status code is not 400' : '';
    expect(result.status === 'ok' ? '' : result.reason).toBe(expected);
  },
);

test('the suite is complete', () => {
  expect(audits.length).toBeGreaterThanOrEqual(60);
});

/**
 * Adds the key that the service requires. It is enough for GET, too (14.26).
 */
function fetchWithKey(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${store.key}`);
  return fetch(url, { ...init, headers });
}
