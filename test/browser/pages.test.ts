import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { hasBrowser, launch, visit } from '../support/browser.ts';
import { rest } from '../support/rest.ts';
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

  // Apollo's script comes from Apollo's servers, which tests do not ask: this stands in for it, notes what the page
  // hands it, and does what it does with that, a request from the page.
  const sandbox = `window.EmbeddedSandbox = class {
    constructor(handed) {
      const { document: query, sharedHeaders } = handed.initialState;
      fetch(handed.initialEndpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...sharedHeaders },
        body: JSON.stringify({ query }),
      }).then(async (response) => {
        const answered = { status: response.status, body: await response.json() };
        const note = Object.assign(document.createElement('pre'), { id: 'note' });
        note.textContent = JSON.stringify({ handed, answered });
        document.body.append(note);
      });
    }
  }`;

  test('/graphql is Apollo Sandbox, with this endpoint, a first document and the header for the key', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin, {
      'https://embeddable-sandbox.cdn.apollographql.com/': { contentType: 'text/javascript', body: sandbox },
      'https://fonts.googleapis.com/': { contentType: 'text/css', body: '' },
      'https://apollo-server-landing-page.cdn.apollographql.com/': { contentType: 'image/png', body: '' },
    });
    await page.goto(`${store.origin}/graphql`);
    expect(JSON.parse((await page.locator('#note').textContent()) ?? '')).toMatchObject({
      handed: {
        initialEndpoint: `${store.origin}/graphql`,
        initialState: {
          document: expect.stringContaining('query Pets'),
          sharedHeaders: { Authorization: 'Bearer <API_KEY>' },
        },
      },
      answered: { status: 401, body: { errors: [{ extensions: { code: 'UNAUTHENTICATED', status: 401 } }] } },
    });
    // The browser reports every 401; nothing else went wrong, the content security policy included.
    expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
    expect(foreign).toEqual([]);
    await page.close();
  });
});
