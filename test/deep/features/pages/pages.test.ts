import type { Locator, Page } from 'playwright-core';
import { expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import {
  browserForAll,
  eachDisplay,
  expectAccessible,
  inBrowser,
} from '../../support/browser.ts';

const greatest = '9223372036854775807';

inBrowser(() => {
  const store = storeForAll();
  const visit = browserForAll(store);

  async function openReference(page: Page, path = '/docs'): Promise<void> {
    await page.goto(path);
    await page.locator('.opblock').nth(3).waitFor();
  }

  test('the front page has no barrier on any display, fits a phone, and loads only its icon and its scripts', () =>
    visit(async (page) => {
      const requests: string[] = [];
      page.on('request', (request) =>
        requests.push(new URL(request.url()).pathname),
      );
      await page.goto('/');
      await eachDisplay(page);
      const scripts = [
        'add-form.js',
        'collections.js',
        'copy.js',
        'front-page.js',
        'items.js',
        'key.js',
        'table.js',
      ].map((name) => `/docs/static/${name}`);
      expect(requests.filter((path) => path !== '/favicon.ico').sort()).toEqual(
        ['/', ...scripts],
      );
    }));

  test.each(['', '/errors', '/configuration', '/develop'])(
    'the guide %s has no barrier on any display, fits a phone and loads nothing from other hosts',
    (name) =>
      visit(async (page) => {
        await page.goto(`/guide${name}`);
        await eachDisplay(page);
      }),
  );

  test('the search: / opens it, the keyboard alone finds a chapter and opens it, and it has no barrier', () =>
    visit(async (page) => {
      const requests: string[] = [];
      page.on('request', (request) =>
        requests.push(new URL(request.url()).pathname),
      );
      await page.goto('/guide/errors');
      expect(requests).not.toContain('/guide/search-index.js');
      await page.keyboard.press('/');
      await page.keyboard.type('IDEMPOTENCY_KEY_REUSED');
      const results = page.locator('#results a');
      await results.first().waitFor();
      await eachDisplay(page);
      expect(await results.first().textContent()).toMatch(
        /^IDEMPOTENCY_KEY_REUSED Errors/,
      );
      expect(await page.locator('#results mark').count()).toBeGreaterThan(2);
      await page.keyboard.press('Enter');
      await page.waitForURL(/#idempotency_key_reused$/);
      expect(await page.getByRole('dialog').isVisible()).toBe(false);

      await page.keyboard.press('/');
      await page.keyboard.type('subscriptions_per_key');
      await results.filter({ hasText: '0 to 1000000' }).waitFor();
      for (let step = 0, isThere = false; step < 8 && !isThere; step++) {
        await page.keyboard.press('ArrowDown');
        isThere = /per_key$/.test(
          await page.evaluate('document.activeElement.href ?? ""'),
        );
      }
      await page.keyboard.press('Enter');
      await page
        .locator('#subscriptions_per_key:target')
        .filter({ hasText: 'SUBSCRIPTIONS_PER_KEY' })
        .waitFor();

      await page.getByRole('button', { name: 'Search' }).click();
      await page.keyboard.type('zzyzx/');
      await page.getByText('0 found').waitFor();
      await page.keyboard.press('Escape');
      expect(await page.getByRole('dialog').isVisible()).toBe(false);
    }));

  test('the reference: all examples succeed from top to bottom on a new store with a pasted key', () =>
    visit(async (page) => {
      await openReference(page);
      await authorize(page, store.key);
      expect(
        await execute(await openOperation(page, 'Pets-listPets'), 200),
      ).toBe('[]');
      const created = await execute(
        await openOperation(page, 'Pets-createPet'),
        201,
      );
      expect(created).toBe(
        `{\n  "id": 1,\n  "name": "Rex",\n  "categoryId": 9007199254740993,\n  "status": "available"\n}`,
      );
      expect(await execute(await openOperation(page, 'Pets-getPet'), 200)).toBe(
        created,
      );
      const headings = page.locator('#operations-Pets-getPet h4:visible');
      expect(
        (await headings.allTextContents()).filter((text) =>
          text.startsWith('Responses'),
        ),
      ).toEqual(['Responses']);
      const list = page.locator('section.models article', {
        hasText: /^Pets/,
      });
      expect(await list.textContent()).toContain('array of Pet');
      await eachDisplay(page);
      await page.locator('.btn.authorize').click();
      await expectAccessible(page)('asking for a key, on a phone in the dark');
    }));

  test('the reference: an int64 stays exact when it is typed, sent, stored and shown', () =>
    visit(async (page) => {
      await openReference(page);
      await authorize(page, store.key);
      const create = await openOperation(page, 'Pets-createPet');
      await create
        .locator('textarea')
        .fill(`{"name":"Exact","categoryId":${greatest},"status":"pending"}`);
      const sent = page.waitForRequest(
        (request) => request.method() === 'POST',
      );
      expect(await execute(create, 201)).toContain(`"categoryId": ${greatest}`);
      expect((await sent).postData()).toContain(`"categoryId":${greatest}`);
      expect(await create.locator('.samples').textContent()).toContain(
        greatest,
      );
      const { json } = await rest(store, '/v1/pets?status=pending');
      expect(json).toMatchObject([
        { name: 'Exact', categoryId: 9223372036854775807n },
      ]);

      const list = await openOperation(page, 'Pets-listPets');
      expect(await execute(list, 200)).toContain(`"categoryId": ${greatest}`);
      await list.locator('tr[data-param-name=after] input').fill(greatest);
      expect(await execute(list, 200)).toBe('[]');
      expect(await list.locator('.request-url').textContent()).toContain(
        `after=${greatest}`,
      );
    }));

  test('the reference: its own examples show every digit of an int64, and those of the document stay exact', () =>
    visit(async (page) => {
      await page.route('**/v1/openapi.json', async (route) => {
        const document = await (await route.fetch()).text();
        await route.fulfill({
          body: document
            .replaceAll('"name":"Rex"', `"name":${greatest}`)
            .replace(
              /"example":1(?=,"in":"path","name":"petId")/,
              `"example":${greatest}`,
            ),
        });
      });
      await page.goto('/docs');
      const create = await openOperation(page, 'Pets-createPet');
      const examples = [
        await create.locator('textarea').inputValue(),
        await create.locator('.responses-inner').textContent(),
      ];
      for (const example of examples) {
        expect(example).toContain(`"name": ${greatest}`);
        expect(example).toContain('"categoryId": 9007199254740993');
      }
      const get = await openOperation(page, 'Pets-getPet');
      expect(
        await get.locator('tr[data-param-name=petId] input').inputValue(),
      ).toBe(greatest);
    }));

  test('the reference: it names this service alone, a link opens one operation, wrong keys are reported, and days of removal are shown', () =>
    visit(
      async (page) => {
        await openReference(page, '/docs#/Pets/listPets');
        const list = page.locator('#operations-Pets-listPets');
        expect(await execute(list, 401)).toContain(
          'An API key is required: Authorization: Bearer <API_KEY>.',
        );
        await authorize(page, 'ask_wrong');
        expect(await execute(list, 401)).toContain('The API key is not valid.');

        const deprecated = await (
          await openOperation(page, 'Pets-getPet')
        ).textContent();
        expect(deprecated).toContain('Get an animal (until 5 December 2030)');
        expect(deprecated).toContain('Warning: Deprecated');
        expect(await page.title()).toBe('REST reference · Animal Store');
        expect(await page.locator('body').textContent()).not.toMatch(
          /swagger|fastify/i,
        );
        expect(await page.locator('.topbar').count()).toBe(0);
        expect(await page.locator('img').count()).toBe(0);
      },
      { isRefused: true },
    ));

  test('a key of the front page works on all pages of the tab', () =>
    visit(
      async (page) => {
        await rest(store, '/v1/pets', {
          method: 'POST',
          json: { name: 'Rex', categoryId: BigInt(greatest) },
        });
        await page.goto('/');
        const messageShown = (text: string) =>
          page.locator('#said', { hasText: text }).waitFor();
        await page.getByLabel('API key').fill(store.key);
        await page.getByRole('button', { name: 'Use key' }).click();
        await messageShown('is valid.');
        await page
          .getByRole('link', { name: 'Reference', exact: true })
          .click();
        expect(
          await execute(await openOperation(page, 'Pets-listPets'), 200),
        ).toContain(`"categoryId": ${greatest}`);
        await page.goto('/graphiql');
        await page.getByText('The schema is loaded.').waitFor();
        expect(
          await page.evaluate('JSON.stringify(localStorage)'),
        ).not.toContain(store.key);

        await page.goto('/');
        await messageShown('is valid.');
        await page.getByRole('button', { name: 'Forget key' }).click();
        expect(
          await page.evaluate('JSON.stringify({ ...sessionStorage })'),
        ).not.toContain(store.key);
      },
      { isRefused: true },
    ));

  test('the reference: it shows whole addresses, samples of the input without the key, and hides headers', () =>
    visit(async (page) => {
      await openReference(page);
      await authorize(page, store.key);
      await page.getByRole('link', { name: 'POST /v1/pets' }).click();
      const create = page.locator('#operations-Pets-createPet');
      await create
        .locator('textarea')
        .fill(`{"name":"It's", "categoryId":${greatest}}`);
      const samples = create.locator('.samples pre');
      await samples
        .filter({ hasText: 'urllib' })
        .filter({ hasText: greatest })
        .waitFor({ state: 'attached' });
      const [curl, javaScript, python] = await samples.allTextContents();
      expect(curl).toBe(
        `curl '${store.origin}/v1/pets' \\\n  -H "Authorization: Bearer $KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"name":"It'\\''s","categoryId":${greatest}}'`,
      );
      expect(javaScript).toContain(
        `body: "{\\"name\\":\\"It's\\",\\"categoryId\\":${greatest}}"`,
      );
      expect(python).toContain(
        `data="{\\"name\\":\\"It's\\",\\"categoryId\\":${greatest}}".encode()`,
      );
      await execute(create, 201);
      expect(await page.locator('body').textContent()).not.toContain(store.key);
      const header = create.locator(
        'tr[data-param-name=Idempotency-Key] input',
      );
      expect(await header.isVisible()).toBe(false);
      await create.getByText('Header Idempotency-Key').click();
      expect(await header.isVisible()).toBe(true);
    }));

  test('a wrong address gets a page with one sentence and a link to the front page', () =>
    visit(
      async (page) => {
        await page.goto('/no/such/page');
        await eachDisplay(page);
        await page.getByRole('link', { name: 'Go to the front page' }).click();
        await page.getByRole('heading', { name: 'Animal Store' }).waitFor();
        expect(page.url()).toBe(`${store.origin}/`);
      },
      { isRefused: true },
    ));

  test('the reference: it works behind a proxy that strips a prefix, from the front page on', () =>
    visit(async (page) => {
      const paths: string[] = [];
      await page.route(`${store.origin}/**`, (route) => {
        const url = route.request().url();
        paths.push(new URL(url).pathname);
        return route.continue({ url: url.replace('/behind/', '/') });
      });
      await page.goto('/behind/');
      await page.getByRole('link', { name: 'Reference' }).click();
      await authorize(page, store.key);
      expect(
        await execute(await openOperation(page, 'Pets-listPets'), 200),
      ).toMatch(/^\[/);
      expect(paths).toContain('/behind/v1/pets');
      expect(paths.filter((path) => !path.startsWith('/behind/'))).toEqual([]);
    }));
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

async function openOperation(page: Page, id: string): Promise<Locator> {
  const operation = page.locator(`#operations-${id}`);
  await operation.locator('.opblock-summary-control').click();
  return operation;
}

/**
 * Sends the request of an operation with its input. @returns the body of the
 * response, as the page shows it
 */
async function execute(operation: Locator, status = 0): Promise<string> {
  const response = operation
    .page()
    .waitForResponse((candidate) => /\/v1\/(?!openapi)/.test(candidate.url()));
  await operation.locator('.execute').click();
  await response;
  const live = operation.locator('.live-responses-table tbody');
  await live
    .locator('.response-col_status', { hasText: status ? `${status}` : /\d/ })
    .waitFor();
  return (
    (await live.locator('.microlight').first().textContent()) ?? ''
  ).trim();
}
