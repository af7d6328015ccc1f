import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { barriers, eachLook, hasBrowser, launch, visit } from '../support/browser.ts';

const inBrowser = hasBrowser ? describe : describe.skip;

const greatest = '9223372036854775807';

inBrowser('pages in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', () => {
  const store = storeForAll();
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  async function open(path = '/docs') {
    const visited = await visit(browser, store.origin);
    await visited.page.goto(`${store.origin}${path}`);
    await visited.page.locator('.opblock').nth(3).waitFor();
    return visited;
  }

  test('the front page has no barrier in any look, fits a phone, and loads nothing but its icon and its script', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await page.goto(store.origin);
    await eachLook(page, 'front-page', async (look) => {
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([look, await barriers(page), overflow]).toEqual([look, [], 0]);
    });
    expect(requests.filter((path) => path !== '/favicon.ico')).toEqual([
      '/',
      '/docs/static/front-page.js',
      '/docs/static/key.js',
    ]);
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test.each(['', '/errors', '/configuration', '/develop'])(
    'the guide %s has no barrier in any look, fits a phone and loads nothing foreign',
    async (name) => {
      const { page, complaints, foreign } = await visit(browser, store.origin);
      await page.goto(`${store.origin}/guide${name}`);
      await eachLook(page, `guide${name.replace('/', '-')}`, async (look) => {
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect([look, await barriers(page), overflow]).toEqual([look, [], 0]);
      });
      expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
      await page.close();
    },
  );

  test('the reference: its examples, tried from top to bottom on a new store with a pasted key, all succeed', async () => {
    const { page, complaints, foreign } = await open();
    await authorize(page, store.key);
    expect(await execute(await opened(page, 'Pets-listPets'), 200)).toBe('[]');
    const created = await execute(await opened(page, 'Pets-createPet'), 201);
    expect(JSON.parse(created)).toEqual({ id: 1, name: 'Rex', categoryId: 5, status: 'available' });
    expect(await execute(await opened(page, 'Pets-getPet'), 200)).toBe(created);
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test('the reference: an int64 is exact to the last digit as it is typed, sent, stored and shown', async () => {
    const { page } = await open();
    await authorize(page, store.key);
    const create = await opened(page, 'Pets-createPet');
    await create.locator('textarea').fill(`{"name":"Exact","categoryId":${greatest},"status":"pending"}`);
    const sent = page.waitForRequest((request) => request.method() === 'POST');
    expect(await execute(create, 201)).toContain(`"categoryId": ${greatest}`);
    expect((await sent).postData()).toContain(`"categoryId":${greatest}`);
    expect(await create.locator('.curl').textContent()).toContain(greatest);
    const { json } = await rest(store, '/v1/pets?status=pending');
    expect(json).toMatchObject([{ name: 'Exact', categoryId: 9223372036854775807n }]);

    const list = await opened(page, 'Pets-listPets');
    expect(await execute(list, 200)).toContain(`"categoryId": ${greatest}`);
    await list.locator('tr[data-param-name=after] input').fill(greatest);
    expect(await execute(list, 200)).toBe('[]');
    expect(await list.locator('.request-url').textContent()).toContain(`after=${greatest}`);
    await page.close();
  });

  test('an int64 is exact in an example of the document', async () => {
    const { page } = await visit(browser, store.origin);
    await page.route('**/v1/openapi.json', async (route) => {
      const document = await (await route.fetch()).text();
      await route.fulfill({
        body: document
          .replaceAll('"categoryId":5', `"categoryId":${greatest}`)
          .replace(/"example":1(?=,"in":"path","name":"petId")/, `"example":${greatest}`),
      });
    });
    await page.goto(`${store.origin}/docs`);
    const create = await opened(page, 'Pets-createPet');
    expect(await create.locator('textarea').inputValue()).toContain(`"categoryId": ${greatest}`);
    expect(await create.locator('.responses-inner').textContent()).toContain(`"categoryId": ${greatest}`);
    const get = await opened(page, 'Pets-getPet');
    expect(await get.locator('tr[data-param-name=petId] input').inputValue()).toBe(greatest);
    await page.close();
  });

  test('the reference: under our name alone, a link leads to one operation, wrong keys are told, and days of removal are shown', async () => {
    const { page, complaints, foreign } = await open('/docs#/Pets/listPets');
    const list = page.locator('#operations-Pets-listPets');
    expect(await execute(list, 401)).toContain('An API key is required: Authorization: Bearer <API_KEY>.');
    await authorize(page, 'ask_wrong');
    expect(await execute(list, 401)).toContain('The API key is not valid.');

    const deprecated = await (await opened(page, 'Pets-getPet')).textContent();
    for (const part of ['Get an animal (until 5 December 2030)', 'Warning: Deprecated']) {
      expect(deprecated).toContain(part);
    }
    expect(await page.title()).toBe('REST reference · Animal Store');
    expect(await page.locator('body').textContent()).not.toMatch(/swagger|fastify/i);
    expect(await page.locator('.topbar').count()).toBe(0);
    const images = page.locator('img').evaluateAll((all: any[]) => all.map(({ src }) => src));
    expect(await images).toEqual([`${store.origin}/docs/static/icon.svg`]);
    // The browser reports every 401.
    expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('a key given on the front page shows numbers, adds an animal with an exact int64, and serves all pages of the tab', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(store.origin);
    const status = page.locator('#said');
    await page.getByLabel('API key').fill('ask_wrong');
    await page.getByRole('button', { name: 'Use key' }).click();
    await status.filter({ hasText: 'The API key is not valid.' }).waitFor();
    await page.getByLabel('API key').fill(store.key);
    await page.getByRole('button', { name: 'Use key' }).click();
    await status.filter({ hasText: 'The key is valid.' }).waitFor();
    const before = Number(await page.locator('#animals').textContent());
    expect(await page.locator('#database').textContent()).toBe('ready');
    await page.getByLabel('Name').fill('From "the" page');
    await page.getByLabel('Category id').fill(greatest);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page
      .locator('#created')
      .filter({ hasText: `"categoryId":${greatest}` })
      .waitFor();
    await page
      .locator('#animals')
      .filter({ hasText: `${before + 1}` })
      .waitFor();
    await eachLook(page, 'front-page-with-key', async (look) => {
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([look, await barriers(page), overflow]).toEqual([look, [], 0]);
    });

    await page.getByRole('link', { name: 'Reference', exact: true }).click();
    expect(await execute(await opened(page, 'Pets-listPets'), 200)).toContain(`"categoryId": ${greatest}`);
    await page.goto(`${store.origin}/graphiql`);
    await page.getByText('The schema is loaded.').waitFor();
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain(store.key);

    await page.goto(store.origin);
    await status.filter({ hasText: 'The key is valid.' }).waitFor();
    await page.getByRole('button', { name: 'Forget key' }).click();
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).not.toContain(store.key);
    expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('the reference: shows whole addresses, samples of what is filled in without the key, and folds headers away', async () => {
    const { page } = await open();
    await authorize(page, store.key);
    expect(await page.locator('#contents a').allTextContents()).toContain('POST /v1/pets');
    await page.getByRole('link', { name: 'POST /v1/pets' }).click();
    const create = page.locator('#operations-Pets-createPet');
    await create.locator('textarea').fill(`{"name":"It's", "categoryId":${greatest}}`);
    const samples = create.locator('.samples pre');
    await samples.filter({ hasText: 'urllib' }).filter({ hasText: greatest }).waitFor({ state: 'attached' });
    const [curl, javaScript, python] = await samples.allTextContents();
    expect(curl).toBe(
      `curl '${store.origin}/v1/pets' \\\n  -H "Authorization: Bearer $KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"name":"It'\\''s","categoryId":${greatest}}'`,
    );
    expect(javaScript).toContain(`body: "{\\"name\\":\\"It's\\",\\"categoryId\\":${greatest}}"`);
    expect(python).toContain(`data="{\\"name\\":\\"It's\\",\\"categoryId\\":${greatest}}".encode()`);
    expect([curl, javaScript, python].join()).not.toContain(store.key);
    const header = create.locator('tr[data-param-name=Idempotency-Key] input');
    expect(await header.isVisible()).toBe(false);
    await create.getByText('Header Idempotency-Key').click();
    expect(await header.isVisible()).toBe(true);
    await page.close();
  });

  test('a wrong address is a page with one sentence and the way home', async () => {
    const { page, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/no/such/page`);
    await eachLook(page, 'error-page', async (look) => expect([look, await barriers(page)]).toEqual([look, []]));
    await page.getByRole('link', { name: 'Go to the front page' }).click();
    await page.getByRole('heading', { name: 'Animal Store' }).waitFor();
    expect(page.url()).toBe(`${store.origin}/`);
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('the reference: works behind a proxy that strips a prefix, from the front page on', async () => {
    const { page, complaints } = await visit(browser, store.origin);
    const asked: string[] = [];
    await page.route(`${store.origin}/**`, (route) => {
      const url = route.request().url();
      asked.push(new URL(url).pathname);
      return route.continue({ url: url.replace('/behind/', '/') });
    });
    await page.goto(`${store.origin}/behind/`);
    await page.getByRole('link', { name: 'Reference' }).click();
    await authorize(page, store.key);
    expect(await execute(await opened(page, 'Pets-listPets'), 200)).toMatch(/^\[/);
    expect(asked).toContain('/behind/v1/pets');
    expect(asked.filter((path) => !path.startsWith('/behind/'))).toEqual([]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('the reference: has no barrier and fits its window in any look, with answers and asking for a key', async () => {
    const { page, complaints, foreign } = await open();
    const look = async (name: string) => {
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([name, await barriers(page), overflow]).toEqual([name, [], 0]);
    };
    await authorize(page, store.key);
    for (const id of ['Pets-createPet', 'Pets-getPet']) await execute(await opened(page, id));
    await eachLook(page, 'reference', look);
    await page.locator('.btn.authorize').click();
    await look('asking for a key, on a phone in the dark');
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });
});

async function authorize(page: Page, key: string): Promise<void> {
  await page.locator('.btn.authorize').click();
  const dialog = page.locator('.auth-container');
  const logout = dialog.getByRole('button', { name: 'Logout' });
  if (await logout.isVisible()) await logout.click();
  await dialog.locator('input').fill(key);
  await dialog.locator('button[type=submit]').click();
  await dialog.locator('.btn-done').click();
}

async function opened(page: Page, id: string): Promise<Locator> {
  const operation = page.locator(`#operations-${id}`);
  await operation.locator('.opblock-summary-control').click();
  return operation;
}

/** Sends the request of an operation as it is filled in. @returns the body of the answer, as the page shows it */
async function execute(operation: Locator, status = 0): Promise<string> {
  const response = operation.page().waitForResponse((one) => /\/v1\/(?!openapi)/.test(one.url()));
  await operation.locator('.execute').click();
  await response;
  const live = operation.locator('.live-responses-table tbody');
  await live.locator('.response-col_status', { hasText: status ? `${status}` : /\d/ }).waitFor();
  return ((await live.locator('.microlight').first().textContent()) ?? '').trim();
}
