import type { Page, Route } from 'playwright-core';
import { beforeEach, expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import {
  browserForAll,
  eachDisplay,
  inBrowser,
} from '../../support/browser.ts';

/**
 * The front page with a key: the table of animals, and the form that adds one.
 */

const greatest = '9223372036854775807';
const failed = (status: string) =>
  `Failed to load resource: the server responded with a status of ${status}`;

inBrowser(() => {
  const store = storeForAll();
  const visit = browserForAll(store);
  beforeEach(() => store.empty());

  async function create(
    name: string,
    status = 'available',
    categoryId = '5',
  ): Promise<string> {
    const json = { name, status, categoryId: BigInt(categoryId) };
    return `${(await rest(store, '/v1/pets', { method: 'POST', json })).json.id}`;
  }

  async function enterKey(page: Page, key = store.key): Promise<void> {
    await page.goto('/');
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
  }

  const live = (page: Page) =>
    page.getByText('Live: new animals appear at the top.').waitFor();
  const names = (page: Page) => page.locator('tbody .name').allTextContents();
  const isOfLive = (route: Route) =>
    route.request().headers().accept === 'text/event-stream';

  test('a wrong key is not kept: it stays in its field, which is marked, and the page says how to get one', () =>
    visit(
      async (page) => {
        await enterKey(page, 'ask_wrong');
        await page
          .locator('#said.wrong', { hasText: 'The API key is not valid.' })
          .waitFor();
        const field = page.getByLabel('API key');
        expect([
          await field.inputValue(),
          await field.getAttribute('aria-invalid'),
        ]).toEqual(['ask_wrong', 'true']);
        expect(
          await page.evaluate('JSON.stringify({ ...sessionStorage })'),
        ).toBe('{}');
        expect(
          await page.getByRole('heading', { name: 'Get a key' }).isVisible(),
        ).toBe(true);
        expect(await page.locator('#store').isVisible()).toBe(false);
        await eachDisplay(page);

        await field.fill(store.key);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'The animals' }).waitFor();
        expect(await field.getAttribute('aria-invalid')).toBe('false');
        expect(
          await page.getByRole('heading', { name: 'Get a key' }).isVisible(),
        ).toBe(false);
      },
      { isRefused: true },
    ));

  test('the table has pages and a filter, by the keyboard, and the JSON of each animal with every digit', () =>
    visit(async (page) => {
      for (let n = 1; n <= 41; n++)
        await create(
          `Pet ${n}`,
          n === 41 ? 'sold' : 'available',
          n === 1 ? greatest : '5',
        );
      await enterKey(page);
      await page.getByText('1 to 20').waitFor();
      expect(await page.locator('#total').textContent()).toBe('41');
      await page
        .locator('#database')
        .getByText('ready', { exact: true })
        .waitFor();
      const press = async (name: string, shown: string) => {
        await page.getByRole('button', { name, exact: true }).focus();
        await page.keyboard.press('Enter');
        await page.getByText(shown, { exact: true }).waitFor();
      };
      await press('Next', '21 to 40');
      await press('Next', '41 to 41');
      expect(await names(page)).toEqual(['Pet 41']);
      await press('Next', '41 to 41');
      await press('Previous', '21 to 40');
      await press('First', '1 to 20');
      const [first] = await page.locator('#pets tr').all();
      await first?.locator('summary').focus();
      await page.keyboard.press('Enter');
      const { text } = await rest(store, '/v1/pets?limit=1');
      expect(
        (await first?.locator('pre').textContent())
          ?.replace(/\n */g, '')
          .replaceAll('": ', '":'),
      ).toBe(text.slice(1, -1));
      await eachDisplay(page);

      await page.getByLabel('Show').selectOption('sold');
      await page.getByText('1 to 1', { exact: true }).waitFor();
      expect([
        await names(page),
        await page.locator('#total').textContent(),
      ]).toEqual([['Pet 41'], '1']);
      await page.getByLabel('Show').selectOption('pending');
      await page.getByText('No animals', { exact: true }).waitFor();
    }));

  test('new animals appear by themselves, those of the filter, also after a time in another tab', () =>
    visit(async (page) => {
      await create('First');
      await enterKey(page);
      await live(page);
      await create('Second <b>');
      await page
        .getByRole('cell', { name: 'Second <b>', exact: true })
        .waitFor();
      expect(await names(page)).toEqual(['Second <b>', 'First']);
      await page.locator('#total', { hasText: /^2$/ }).waitFor();

      const show = (isHidden: boolean) =>
        page.evaluate(`
          Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));`);
      await show(true);
      await create('Third');
      await show(false);
      await page.getByRole('cell', { name: 'Third', exact: true }).waitFor();
      expect(await names(page)).toEqual(['Third', 'Second <b>', 'First']);

      await page.getByLabel('Show').selectOption('sold');
      await page.getByText('No animals', { exact: true }).waitFor();
      await live(page);
      await create('Available');
      await create('Sold', 'sold');
      await page.getByRole('cell', { name: 'Sold', exact: true }).waitFor();
      expect(await names(page)).toEqual(['Sold']);
    }));

  test('no animal is missing that is added before the live list begins, or beyond a page of new ones', () =>
    visit(async (page) => {
      await page.route('**/v1/pets?*', async (route) => {
        if (isOfLive(route)) await create('Between');
        await route.continue();
      });
      await enterKey(page);
      await live(page);
      expect(await names(page)).toEqual(['Between']);
      for (let n = 2; n <= 31; n++) await create(`Pet ${n}`);
      await page.locator('#total', { hasText: /^31$/ }).waitFor();
      await page.getByText('1 to 20', { exact: true }).waitFor();
      expect(await page.locator('#pets tr').count()).toBe(20);
      expect(await names(page)).toHaveLength(31);
      await page.getByRole('button', { name: 'Next', exact: true }).click();
      await page.getByText('21 to 31', { exact: true }).waitFor();
    }));

  test('names of any characters neither end the live list nor leave connections open', () =>
    visit(async (page) => {
      let open = 0;
      page.on('request', (request) => {
        open += Number(request.headers().accept === 'text/event-stream');
      });
      await enterKey(page);
      await live(page);
      const odd = [
        'a\u2028b',
        'c\u2029d',
        'e\u0085f',
        'g\rh\ni',
        '"id":7',
        ': ',
      ];
      for (const name of odd) await create(name);
      await page.locator('#total', { hasText: /^6$/ }).waitFor();
      expect(await names(page)).toEqual(odd.toReversed());
      await live(page);
      expect(open).toBe(1);
    }));

  test('a key that only reads is told so, and gets no form', () =>
    visit(
      async (page) => {
        const { key } = await store.keys.issue({
          name: 'reader',
          scope: 'read',
        });
        await enterKey(page, key);
        await page.getByLabel('Name', { exact: true }).fill('Rex');
        await page.getByLabel('Category id').fill('5');
        await page.getByRole('button', { name: 'Create', exact: true }).click();
        const message = 'This needs an API key with the scope "write".';
        await page.getByText(message, { exact: true }).waitFor();
        expect(await page.locator('#create').isVisible()).toBe(false);
      },
      { errors: [failed('403 (Forbidden)')] },
    ));

  test('odd names keep the table in shape', () =>
    visit(async (page) => {
      for (const name of ['x'.repeat(1000), ' ', '\u202eevil'])
        await create(name);
      await enterKey(page);
      await page.getByText('1 to 3', { exact: true }).waitFor();
      expect(await names(page)).toEqual([
        'x'.repeat(1000),
        '" "',
        '\u202eevil',
      ]);
      const [long, blank] = await page
        .locator('#pets tr')
        .evaluateAll((rows) => rows.map((row) => row.clientHeight));
      expect(long).toBeLessThan(3 * (blank ?? 0));
    }));

  test('a passing failure of the database does not end the live list', () =>
    visit(
      async (page) => {
        let reads = 0;
        await page.route('**/v1/pets?*', async (route) => {
          reads += Number(!isOfLive(route));
          // The second one is that of the beginning live list.
          if (reads !== 2) return route.continue();
          reads += 1;
          const message = 'The database cannot be reached.';
          const json = { code: 'SERVICE_UNAVAILABLE', message, status: 503 };
          return route.fulfill({ status: 503, json });
        });
        await enterKey(page);
        await page
          .getByText('The live list is interrupted, and will be continued.')
          .waitFor();
        await create('Later');
        await live(page);
        await page.getByRole('cell', { name: 'Later', exact: true }).waitFor();
      },
      { errors: [failed('503 (Service Unavailable)')] },
    ));

  test('a key that is revoked while the page is open is not kept', () =>
    visit(
      async (page) => {
        const { key, id } = await store.keys.issue({ name: 'visitor' });
        await enterKey(page, key);
        await live(page);
        await store.keys.revoke(id);
        await page
          .locator('#said.wrong', { hasText: 'The API key is not valid.' })
          .waitFor();
        expect(
          await page.evaluate('JSON.stringify({ ...sessionStorage })'),
        ).toBe('{}');
        expect(await page.locator('#store').isVisible()).toBe(false);
      },
      { isRefused: true },
    ));

  test('the form adds an animal with an exact int64, which appears in the table, and shows what the API answered', () =>
    visit(async (page) => {
      await enterKey(page);
      await page
        .getByRole('heading', { name: 'Create your first animal' })
        .waitFor();
      await live(page);
      await page.getByLabel('Name', { exact: true }).fill('From "the" page');
      await page.getByLabel('Category id').fill(greatest);
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page
        .locator('#created', { hasText: `"categoryId":${greatest}` })
        .waitFor();
      await page.locator('#added', { hasText: 'From "the" page' }).waitFor();
      expect(await page.locator('#added td').nth(2).textContent()).toBe(
        greatest,
      );
      await page.locator('#total', { hasText: '1' }).waitFor();
      await eachDisplay(page);
    }));

  test('code of the front page and of a guide can be copied, and names the address of the service', () =>
    visit(async (page) => {
      await page
        .context()
        .grantPermissions(['clipboard-read', 'clipboard-write']);
      for (const path of ['/', '/guide/rest']) {
        await page.goto(path);
        const [block] = await page.locator('.code', { hasText: 'curl' }).all();
        await block?.getByRole('button', { name: 'Copy' }).click();
        await block?.getByRole('button', { name: 'Copied' }).waitFor();
        const copied = await page.evaluate('navigator.clipboard.readText()');
        expect(copied).toBe(await block?.locator('pre').textContent());
        expect(copied).toContain(`${store.origin}/v1/pets`);
      }
      expect(await page.locator('main').textContent()).not.toContain(
        '127.0.0.1:4000',
      );
    }));

  test.each([
    'errors',
    'graphql',
    'from-rest-to-graphql',
    'assistants',
    'develop',
  ])('no code of the guide %s is cut', (name) =>
    visit(async (page) => {
      await page.goto(`/guide/${name}`);
      await eachDisplay(page, async (display) => {
        const cut = await page
          .locator('pre')
          .evaluateAll(
            (all) =>
              all.filter((one) => one.scrollWidth > one.clientWidth).length,
          );
        expect([display, cut]).toEqual([display, 0]);
      });
    }),
  );
});
