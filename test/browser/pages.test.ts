import type { Browser } from 'playwright-core';
import { hasBrowser, launch, visit } from '../support/browser.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { frameOrigin, sandboxFrame, sandboxScript } from '../support/sandbox.ts';
import { type Store, startStore } from '../support/store.ts';

const inBrowser = hasBrowser ? describe : describe.skip;

inBrowser('in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', () => {
  let store: Store;
  let browser: Browser;
  beforeAll(async () => {
    store = await startStore();
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await store?.close();
  });
  beforeEach(() => store.empty());

  test('/docs shows every operation and lets a user with a key add and list animals', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/docs`);
    const operations = page.locator('.opblock');
    await operations.nth(3).waitFor();
    expect(await operations.count()).toBe(4);

    await page.locator('.btn.authorize').click();
    await page.locator('.auth-container input').fill(store.key);
    await page.locator('.auth-container button[type=submit]').click();
    await page.locator('.auth-container .btn-done').click();

    const create = page.locator('#operations-Pets-createPet');
    await create.locator('.opblock-summary-control').click();
    await create.locator('textarea').fill('{"name": "Rex", "categoryId": 9007199254740993, "status": "sold"}');
    await create.locator('.execute').click();
    await create.locator('.live-responses-table .response-col_status', { hasText: '201' }).waitFor();
    expect((await rest(store, '/v1/pets')).json).toMatchObject([{ name: 'Rex', categoryId: 9007199254740993n }]);

    const list = page.locator('#operations-Pets-listPets');
    await list.locator('.opblock-summary-control').click();
    await list.locator('.execute').click();
    await list.locator('.live-responses-table .response-col_status', { hasText: '200' }).waitFor();
    expect(await list.locator('.live-responses-table').textContent()).toContain('"name": "Rex"');
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test('/docs shows what a user without a key is told', async () => {
    const { page, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/docs#/Pets/listPets`);
    const list = page.locator('#operations-Pets-listPets');
    await list.locator('.execute').click();
    await list.locator('.live-responses-table .response-col_status', { hasText: '401' }).waitFor();
    expect(await list.locator('.live-responses-table').textContent()).toContain('UNAUTHENTICATED');
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('14.27: /graphql is Apollo Sandbox, where a user fills in the key and then sees schema and data', async () => {
    await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 9007199254740993n } });
    const { page, complaints, foreign } = await visit(browser, store.origin, {
      'https://embeddable-sandbox.cdn.apollographql.com/': await sandboxScript(),
      [`${frameOrigin}/sandbox/explorer?`]: sandboxFrame,
      'https://fonts.googleapis.com/': { contentType: 'text/css', body: '' },
      'https://apollo-server-landing-page.cdn.apollographql.com/': { contentType: 'image/png', body: '' },
    });
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.request().method() === 'POST') statuses.push(response.status());
    });
    await page.goto(`${store.origin}/graphql`);
    const frame = page.frameLocator('iframe');

    const settings = JSON.parse((await frame.locator('#settings').textContent()) ?? '');
    expect(settings).toEqual({
      endpoint: `${store.origin}/graphql`,
      defaultDocument: expect.any(String),
      defaultHeaders: '{"Authorization":"Bearer <API_KEY>"}',
      sendOperationHeadersInIntrospection: 'true',
      // No polling.
      shouldDefaultAutoupdateSchema: 'false',
      endpointIsEditable: 'false',
      hideCookieToggle: 'false',
      initialRequestConnectorsDebugging: 'false',
      initialRequestQueryPlan: 'false',
      parentSupportsSubscriptions: 'true',
      runTelemetry: 'false',
      runtime: expect.stringMatching(/^@apollo\/server@5/),
      version: '2.7.4',
    });

    // The frame introspects as soon as it is there, with a placeholder for a key.
    await frame.locator('#schema', { hasText: 'UNAUTHENTICATED' }).waitFor();
    await frame.locator('#headers').fill(JSON.stringify({ Authorization: `Bearer ${store.key}` }));
    await frame.locator('#introspect').click();
    const names = { queryType: { name: 'Query' }, mutationType: { name: 'Mutation' } };
    await frame.locator('#schema', { hasText: JSON.stringify({ schema: { __schema: names } }) }).waitFor();
    await frame.locator('#run').click();
    const answer = await frame.locator('#response', { hasText: 'Rex' }).textContent();
    expect(JSON.parse(answer ?? '')).toMatchObject({
      status: 200,
      data: { pets: [{ id: expect.any(String), name: 'Rex', categoryId: '9007199254740993', status: 'available' }] },
    });

    expect(statuses).toEqual([401, 200, 200]);
    // The browser reports every 401; nothing else went wrong, the content security policy included.
    expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
    expect(foreign).toEqual([]);
    await page.close();
  });
});
