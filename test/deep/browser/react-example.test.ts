import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import {
  afterAll,
  beforeAll,
  beforeEach,
  expect,
  test,
} from '../../support/jest.ts';
import {
  eventually,
  freePort,
  killAll,
  runFile,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { type Store, startStore } from '../../support/store.ts';
import { browserForAll, eachDisplay, inBrowser } from '../support/browser.ts';

const vite = resolve('examples/react/node_modules/vite/bin/vite.js');
const categoryId = 9007199254740993n;

inBrowser(() => {
  let store: Store;
  const page = { origin: '' };
  beforeAll(async () => {
    const port = `${await freePort()}`;
    page.origin = `http://127.0.0.1:${port}`;
    store = await startStore({ CORS_ORIGINS: page.origin });
    await promisify(execFile)(
      process.execPath,
      [vite, 'build', '--logLevel', 'warn'],
      { cwd: 'examples/react' },
    );
    runFile(vite, ['preview', 'examples/react', '--port', port], {
      STORE_URL: store.origin,
    });
    await eventually(async () => (await fetch(page.origin)).ok);
  });
  const visit = browserForAll(page);
  afterAll(async () => {
    await killAll();
    await store?.close();
  });
  beforeEach(() => store.empty());

  const add = async (name: string, status: string) =>
    (
      await rest(store, '/v1/pets', {
        method: 'POST',
        json: { name, categoryId, status },
      })
    ).json;

  const openStore = async (page: Page, key: string) => {
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Open the store' }).click();
  };

  test('examples/react lists by status and page, and adds an animal with an exact int64', () =>
    visit(async (page) => {
      for (let at = 1; at <= 21; at++)
        await add(`Rex ${at}`, at % 2 ? 'available' : 'sold');
      await page.goto('/');
      await openStore(page, store.key);

      const rows = page.getByRole('listitem');
      await rows.nth(19).waitFor();
      expect(await rows.count()).toBe(20);
      await page.getByRole('button', { name: 'More' }).click();
      await rows.nth(20).waitFor();
      expect(await page.getByRole('button', { name: 'More' }).count()).toBe(0);

      await page.getByLabel('sold').check();
      await page.getByRole('listitem').filter({ hasText: 'Rex 20' }).waitFor();
      expect(await rows.count()).toBe(10);
      await add('Zoe', 'available');
      await page.getByLabel('available').check();
      await rows.filter({ hasText: 'Zoe' }).waitFor();
      await add('Yan', 'sold');
      await page.getByLabel('sold').check();
      await rows.filter({ hasText: 'Yan' }).waitFor();
      await page.getByLabel('all').check();
      await page.getByRole('button', { name: 'More' }).click();
      await rows.nth(22).waitFor();

      await page.getByLabel('Name').fill('Ada');
      await page.getByLabel('Category').fill('9223372036854775807');
      await page.getByRole('button', { name: 'Add' }).click();
      await rows.nth(23).waitFor();
      const { json: all } = await rest(store, '/v1/pets?limit=100');
      const ada = all.at(-1);
      expect(ada).toMatchObject({
        name: 'Ada',
        categoryId: 9223372036854775807n,
        status: 'available',
      });
      expect(await rows.last().textContent()).toBe(
        `Adaavailableid ${ada.id} · category 9223372036854775807`,
      );
      expect(await page.getByRole('status').textContent()).toBe(
        `Ada was added with the id ${ada.id}.`,
      );

      // A refused input shows an error. A reload shows the list again, because
      // the tab keeps the key.
      await page.getByLabel('Name').fill('x'.repeat(10_001));
      await page.getByLabel('Category').fill('1');
      await page.getByRole('button', { name: 'Add' }).click();
      expect(await page.getByRole('alert').textContent()).toMatch(
        /^name must .*BAD_USER_INPUT$/,
      );
      await page.reload();
      await rows.nth(19).waitFor();

      await eachDisplay(page);
    }));

  test('examples/react shows why a key is refused, and accepts another', () =>
    visit(
      async (page) => {
        await page.goto('/');
        await eachDisplay(page);
        await openStore(page, 'wrong');
        expect(await page.getByRole('alert').textContent()).toBe(
          'The API key is not valid.UNAUTHENTICATED',
        );
        await eachDisplay(page);
        await page.getByRole('button', { name: 'Forget the key' }).click();
        await openStore(page, store.key);
        await page.getByText('No animals here yet.').waitFor();
      },
      { isRefused: true },
    ));

  test('the typed client works unbundled as a module, with exact digits, on a page of another origin', () =>
    visit(async (page) => {
      await page.route('/client/**', async (route) => {
        const path = new URL(route.request().url()).pathname.replace(
          '/client/',
          '',
        );
        const body = await readFile(`clients/typescript/dist/${path}`, 'utf8');
        await route.fulfill({ contentType: 'text/javascript', body });
      });
      await page.goto('/');
      const load =
        "import { AnimalStore } from '/client/index.js'; globalThis.AnimalStore = AnimalStore;";
      await page.addScriptTag({ type: 'module', content: load });
      await page.waitForFunction('globalThis.AnimalStore');
      // Routes disable the browser's cache.
      await page.unrouteAll();
      const result = await page.evaluate(
        async ([url, key]) => {
          const { AnimalStore } =
            globalThis as unknown as typeof import('animal-store-client');
          const store = new AnimalStore({ url: `${url}`, key: `${key}` });
          for (const name of ['a', 'b', 'c'])
            await store.create({ name, categoryId: 9223372036854775807n });
          const walked: string[] = [];
          for await (const pet of store.pets({ limit: 2 }))
            walked.push(`${pet.name} ${pet.categoryId}`);
          const added: string[] = [];
          for await (const { name } of store.added({ after: 0 }))
            if (added.push(name) === 3) break;
          const { pets } = await store.graphql<{
            pets: Array<{ categoryId: string }>;
          }>('{ pets { categoryId } }');
          // The browser's cache has the same animals, but now a page follows
          // them.
          const { next: none } = await store.page({ limit: 3 });
          await store.create({ name: 'd', categoryId: 1 });
          const { items, next } = await store.page({ limit: 3 });
          const links =
            none === undefined && next !== undefined && next === items[2]?.id;
          return { walked, added, categoryId: pets[0]?.categoryId, links };
        },
        [store.origin, store.key],
      );
      expect(result).toEqual({
        walked: ['a', 'b', 'c'].map((name) => `${name} 9223372036854775807`),
        added: ['a', 'b', 'c'],
        categoryId: '9223372036854775807',
        links: true,
      });
    }));
});
