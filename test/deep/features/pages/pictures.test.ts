import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { newFolder } from '../../../support/folder.ts';
import { beforeAll, expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import { browserForAll, inBrowser } from '../../support/browser.ts';

/**
 * The pictures of README.md. `PICTURES=docs/images npm run test:deep --
 * pages/pictures` renews them. No picture shows the key.
 */

inBrowser(() => {
  const store = storeForAll();
  const visit = browserForAll(store);
  let folder: string;
  beforeAll(async () => {
    folder = process.env.PICTURES ?? join(await newFolder(), 'pictures');
    await mkdir(folder, { recursive: true });
    const names = ['Bella', 'Simba', 'Nemo', 'Rex', 'Tom'];
    for (const name of names) await create(name, 9007199254740993n);
  });

  const create = (name: string, categoryId: bigint) =>
    rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId } });

  async function giveKey(page: Page, path: string): Promise<void> {
    await page.goto(path);
    await page.getByLabel('API key').fill(store.key);
    await page.getByRole('button', { name: 'Use key' }).click();
  }

  async function openGraphiQL(page: Page, example: string): Promise<void> {
    await giveKey(page, '/graphiql');
    await page.getByText('The schema is loaded.').waitFor();
    await page.getByLabel('Examples').selectOption(example);
    await page.getByRole('button', { name: /^Execute query/ }).click();
  }

  const result = (page: Page, text: string) =>
    page
      .locator('.result-window .CodeMirror-code')
      .filter({ hasText: text })
      .waitFor();

  const pictures: Record<string, (page: Page) => Promise<unknown>> = {
    'front-page': async (page) => {
      await giveKey(page, '/');
      await page.getByText('Live: new animals').waitFor();
      await create('Kim', 5n);
      await page.locator('tr.new', { hasText: 'Kim' }).waitFor();
      await page
        .getByRole('heading', { name: 'Animals' })
        .evaluate((heading) => heading.scrollIntoView());
    },
    'rest-reference': async (page) => {
      await page.goto('/docs');
      const list = page.locator('#operations-Pets-listPets');
      await list.locator('.opblock-summary-control').click();
      await list.locator('.parameters').first().waitFor();
    },
    graphiql: async (page) => {
      await openGraphiQL(page, 'List animals');
      await result(page, 'Bella');
    },
    'live-list': async (page) => {
      await openGraphiQL(page, 'Follow what is added');
      await page.getByRole('button', { name: /^Stop query/ }).waitFor();
      await eventually(async () => store.app.subscriptions.count === 1);
      await create('Kim', 9223372036854775807n);
      await result(page, 'Kim');
    },
  };

  test.each(Object.keys(pictures))('%s is taken in light and dark', (name) =>
    visit(async (page) => {
      // Pages keep the key, and GraphiQL its tabs.
      await page.addInitScript('sessionStorage.clear(); localStorage.clear()');
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize({ width: 1100, height: 700 });
        await page.emulateMedia({ colorScheme });
        await pictures[name]?.(page);
        const path = join(folder, `${name}-${colorScheme}.png`);
        const picture = await page.screenshot({ path });
        expect(picture.length).toBeGreaterThan(20_000);
      }
    }),
  );
});
