import type { Page, Route } from 'playwright-core';
import { checkupsModule } from '../../../modules/checkups/checkups.module.ts';
import { toysModule } from '../../../modules/toys/toys.module.ts';
import { beforeEach, expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import {
  browserForAll,
  eachDisplay,
  inBrowser,
} from '../../support/browser.ts';

/**
 * The front page with a key: the table of a collection, and the form that adds
 * an item.
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
    page.getByText('Live: new animals appear by themselves.').waitFor();
  const names = (page: Page) =>
    page.locator('#items td:nth-child(2)').allTextContents();
  const filter = (page: Page) => page.locator('#filters').getByLabel('Status');
  const shows = (page: Page, text: string) =>
    page.locator('#range').getByText(text, { exact: true }).waitFor();
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
        await page.getByText('is valid.').waitFor();
        expect(await field.getAttribute('aria-invalid')).toBe('false');
        expect(
          await page.getByRole('heading', { name: 'Get a key' }).isVisible(),
        ).toBe(false);
      },
      { isRefused: true },
    ));

  test('the table has pages, newest first, and a filter, by the keyboard, and the JSON of each animal with every digit', () =>
    visit(async (page) => {
      for (let n = 1; n <= 41; n++)
        await create(
          `Pet ${n}`,
          n === 1 ? 'sold' : 'available',
          n === 41 ? greatest : '5',
        );
      await enterKey(page);
      await shows(page, '1 to 20');
      expect((await names(page)).slice(0, 2)).toEqual(['Pet 41', 'Pet 40']);
      expect(await page.locator('#total').textContent()).toBe('41');
      await page
        .locator('#database')
        .getByText('ready', { exact: true })
        .waitFor();
      const press = async (name: string, shown: string) => {
        await page.getByRole('button', { name, exact: true }).focus();
        await page.keyboard.press('Enter');
        await shows(page, shown);
      };
      await press('Next', '21 to 40');
      await press('Next', '41 to 41');
      expect(await names(page)).toEqual(['Pet 1']);
      await press('Next', '41 to 41');
      await press('Previous', '21 to 40');
      await press('First', '1 to 20');
      const [first] = await page.locator('#items tr').all();
      await first?.locator('summary').focus();
      await page.keyboard.press('Enter');
      const { text } = await rest(store, '/v1/pets?limit=1&sort=id_desc');
      expect(
        (await first?.locator('pre').textContent())
          ?.replace(/\n */g, '')
          .replaceAll('": ', '":'),
      ).toBe(text.slice(1, -1));
      await eachDisplay(page);

      await filter(page).selectOption('sold');
      await shows(page, '1 to 1');
      expect([
        await names(page),
        await page.locator('#total').textContent(),
      ]).toEqual([['Pet 1'], '1']);
      await filter(page).selectOption('pending');
      await shows(page, 'No animals');
    }));

  test('the address has the order, the filter and the page: a link shows the same, and the browser goes back', () =>
    visit(async (page) => {
      const ids: string[] = [];
      for (let n = 1; n <= 45; n++)
        ids.push(await create(`Pet ${n}`, n === 2 ? 'sold' : 'available'));
      await enterKey(page);
      await page.getByLabel('Order').selectOption('oldest first');
      await page.locator('#items td', { hasText: /^Pet 1$/ }).waitFor();
      await page.getByRole('button', { name: 'Next', exact: true }).click();
      await shows(page, '21 to 40');
      const address = page.url();
      expect(new URL(address).search).toBe(`?sort=id&after=${ids[19]}`);

      await page.goto('/guide');
      await page.goto(address);
      await shows(page, '20 animals');
      expect((await names(page))[0]).toBe('Pet 21');
      expect(await page.getByLabel('Order').inputValue()).toBe('id');
      await page.getByRole('button', { name: 'Previous', exact: true }).click();
      await shows(page, '1 to 20');
      await filter(page).selectOption('sold');
      await shows(page, '1 to 1');
      await page.goBack();
      await shows(page, '1 to 20');
      expect(await filter(page).inputValue()).toBe('');
      await page.goBack();
      await shows(page, '20 animals');
    }));

  test('an id leads to its page, or is told to be missing; a wrong order in the address is told in a sentence', () =>
    visit(
      async (page) => {
        const ids: string[] = [];
        for (let n = 1; n <= 45; n++) ids.push(await create(`Pet ${n}`));
        await enterKey(page);
        await shows(page, '1 to 20');
        const goTo = async (id: string) => {
          await page.getByLabel('Go to id').fill(id);
          await page.keyboard.press('Enter');
        };
        await goTo(`${ids[9]}`);
        await page.locator('tr[aria-current]', { hasText: 'Pet 10' }).waitFor();
        expect((await names(page)).at(-1)).toBe('Pet 1');
        await page
          .getByRole('button', { name: 'Previous', exact: true })
          .click();
        await page.locator('#items td', { hasText: /^Pet 30$/ }).waitFor();
        expect((await names(page)).at(-1)).toBe('Pet 11');
        await goTo(greatest);
        await shows(page, `The id ${greatest} is not in this list.`);
        expect((await names(page))[0]).toBe('Pet 45');
        await page.goto('/?sort=age');
        await page
          .locator('#said.wrong', { hasText: 'sort must be one of' })
          .waitFor();
      },
      { errors: [failed('400 (Bad Request)')] },
    ));

  test('new animals appear by themselves in their place, marked, those of the filter, also after a time in another tab', () =>
    visit(async (page) => {
      await create('First');
      await enterKey(page);
      await live(page);
      await page.locator('#items summary').click();
      await create('Second <b>');
      const second = page.getByRole('cell', {
        name: 'Second <b>',
        exact: true,
      });
      await second.waitFor();
      expect(await names(page)).toEqual(['Second <b>', 'First']);
      expect(await page.locator('tr.new').allTextContents()).toEqual([
        expect.stringContaining('Second <b>'),
      ]);
      expect(await page.locator('#items details[open]').count()).toBe(1);
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

      await filter(page).selectOption('sold');
      await shows(page, 'No animals');
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
      expect(await names(page)).toHaveLength(20);
      await page.getByRole('button', { name: 'Next', exact: true }).click();
      await shows(page, '21 to 31');
      expect((await names(page)).at(-1)).toBe('Between');
      await create('Elsewhere');
      await page.getByText('Live: 1 new on other pages.').waitFor();
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

  test('a key that only reads gets no form', () =>
    visit(async (page) => {
      const reader = { name: 'reader', scope: 'read' } as const;
      const { key } = await store.keys.issue(reader);
      await enterKey(page, key);
      await page.getByText('The key “reader” (read) is valid.').waitFor();
      expect(await page.locator('#create').isVisible()).toBe(false);
      await enterKey(page);
      await page.getByText(/The key “.*” \(write\) is valid/).waitFor();
      expect(await page.locator('#create').isVisible()).toBe(true);
    }));

  test('odd names keep the table in shape', () =>
    visit(async (page) => {
      for (const name of ['x'.repeat(1000), ' ', '\u202eevil'])
        await create(name);
      await enterKey(page);
      await shows(page, '1 to 3');
      expect(await names(page)).toEqual([
        '\u202eevil',
        '" "',
        'x'.repeat(1000),
      ]);
      const [, blank, long] = await page
        .locator('#items tr')
        .evaluateAll((rows) => rows.map((row) => row.clientHeight));
      expect(long).toBeLessThan(3 * (blank ?? 0));
    }));

  test('a passing failure of the database does not end the live list', () =>
    visit(
      async (page) => {
        let reads = 0;
        await page.route('**/v1/pets?*', async (route) => {
          reads += Number(isOfLive(route));
          if (!isOfLive(route) || reads > 1) return route.continue();
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
    visit(
      async (page) => {
        await enterKey(page);
        await live(page);
        const form = page.locator('#create');
        await form.getByLabel('Name').fill('From "the" page');
        await form.getByLabel('Category id').fill(`000${greatest}`);
        await form.getByRole('button', { name: 'Add', exact: true }).click();
        await page
          .locator('#created', { hasText: `"categoryId":${greatest}` })
          .waitFor();
        await page.locator('tr.new', { hasText: 'From "the" page' }).waitFor();
        expect(await page.locator('tr.new td').nth(2).textContent()).toBe(
          greatest,
        );
        await page.locator('#total', { hasText: '1' }).waitFor();
        await eachDisplay(page);
        await form.getByLabel('Category id').fill('9999999999999999999');
        await form.getByRole('button', { name: 'Add', exact: true }).click();
        await page
          .locator('#created', { hasText: /^categoryId must be an integer/ })
          .waitFor();
      },
      { errors: [failed('400 (Bad Request)')] },
    ));

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

inBrowser(() => {
  const store = storeForAll({}, undefined, {
    more: [toysModule, checkupsModule],
  });
  const visit = browserForAll(store);

  test('each collection of the modules has the table, with its filters, its orders and its form', () =>
    visit(
      async (page) => {
        for (const [name, madeAt] of [
          ['Old', '2020-01-01T00:00:00Z'],
          ['Older', '2010-01-01T00:00:00Z'],
        ]) {
          const json = { name, kind: 'ball', madeAt };
          await rest(store, '/v1/toys', { method: 'POST', json });
        }
        await page.goto('/');
        await page.getByLabel('API key').fill(store.key);
        await page.keyboard.press('Enter');
        const nav = page.getByRole('navigation', { name: 'Collections' });
        await nav.getByRole('link', { name: 'checkups' }).waitFor();
        expect(await nav.getByRole('link').allTextContents()).toEqual([
          'animals',
          'toys',
          'checkups',
        ]);
        await nav.getByRole('link', { name: 'toys' }).click();
        await page.getByText('Live: new toys appear by themselves.').waitFor();
        const names = () =>
          page.locator('#items td:nth-child(2)').allTextContents();
        expect(await names()).toEqual(['Older', 'Old']);
        const beginning = page.getByLabel('Name begins with');
        await beginning.fill('typed');
        const ball = {
          name: 'Ball',
          kind: 'ball',
          madeAt: '2000-01-01T00:00:00Z',
        };
        await rest(store, '/v1/toys', { method: 'POST', json: ball });
        await page.locator('tr.new', { hasText: 'Ball' }).waitFor();
        expect(await beginning.inputValue()).toBe('typed');
        await beginning.fill('');
        expect(await page.locator('#items td').nth(3).textContent()).toBe(
          'null',
        );
        await page.getByLabel('Order').selectOption('Made at, descending');
        await page.waitForURL(/\?collection=toys&sort=madeAt_desc$/);
        await page
          .locator('#items tr:first-child', { hasText: /^\d+Old[^e]/ })
          .waitFor();
        const form = page.locator('#create');
        await form.getByLabel('Name').fill('New');
        await form.getByLabel('Made at').fill('2026-01-01T00:00:00Z');
        await form.getByRole('button', { name: 'Add' }).click();
        await page.locator('tr.new:first-child', { hasText: 'New' }).waitFor();
        const filters = page.locator('#filters');
        await filters.getByLabel('Order').selectOption('Name');
        await filters.getByLabel('Name begins with').fill('OLD');
        await page.keyboard.press('Tab');
        await page.waitForURL(/sort=name&name_prefix=OLD$/);
        await page.locator('#range', { hasText: '1 to 2' }).waitFor();
        expect(await names()).toEqual(['Old', 'Older']);
        await filters.getByLabel('Made at before').fill('yesterday');
        await page.keyboard.press('Tab');
        await page
          .locator('#range', { hasText: 'madeAt_lt must be' })
          .waitFor();
        await filters.getByLabel('Made at before').fill('');
        await page.keyboard.press('Tab');
        await page.locator('#range', { hasText: '1 to 2' }).waitFor();
        await page.locator('#filters').getByLabel('Kind').selectOption('bone');
        await page.locator('#range', { hasText: 'No toys' }).waitFor();
        await eachDisplay(page);

        await page.goto('/?collection=checkups&petId=7');
        await page.locator('#range', { hasText: 'No checkups' }).waitFor();
        expect(
          await page.locator('#filters').getByLabel('Pet id').inputValue(),
        ).toBe('7');
        expect(await page.locator('#live').textContent()).toBe('');
        await eachDisplay(page);
      },
      { errors: [failed('400 (Bad Request)')] },
    ));

  test('a key of one module reads its collection, and is told about another', () =>
    visit(
      async (page) => {
        const ofToys = { name: 'toys', scope: 'toys:write' };
        const { key } = await store.keys.issue(ofToys);
        await page.goto('/');
        await page.getByLabel('API key').fill(key);
        await page.keyboard.press('Enter');
        await page
          .getByText('This needs an API key with the scope "pets:read".')
          .waitFor();
        expect(await page.locator('#get-key').isVisible()).toBe(false);
        await eachDisplay(page);
        await page.getByRole('link', { name: 'toys', exact: true }).click();
        await page.getByText('The key “toys” (toys:write) is valid.').waitFor();
        await page.getByRole('heading', { name: 'Add a toy' }).waitFor();
      },
      { errors: [failed('403 (Forbidden)')] },
    ));
});
