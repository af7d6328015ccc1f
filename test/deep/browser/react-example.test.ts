import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, freePort, killAll, runFile } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { type Store, startStore } from '../../support/store.ts';
import { barriers, eachLook, hasBrowser, launch, visit } from '../support/browser.ts';

const inBrowser = hasBrowser ? describe : describe.skip;
const vite = resolve('examples/react/node_modules/vite/bin/vite.js');
const categoryId = 9007199254740993n;

inBrowser('in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', () => {
  let store: Store;
  let browser: Browser;
  let origin: string;
  beforeAll(async () => {
    const port = `${await freePort()}`;
    origin = `http://127.0.0.1:${port}`;
    store = await startStore({ CORS_ORIGINS: origin });
    await promisify(execFile)(process.execPath, [vite, 'build', '--logLevel', 'warn'], { cwd: 'examples/react' });
    runFile(vite, ['preview', 'examples/react', '--port', port], { STORE_URL: store.origin });
    await eventually(async () => (await fetch(origin)).ok);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await killAll();
    await store?.close();
  });
  beforeEach(() => store.empty());

  const add = async (name: string, status: string) =>
    (await rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId, status } })).json;

  test('examples/react lists by status and page, and adds an animal to its last digit', async () => {
    for (let at = 1; at <= 21; at++) await add(`Rex ${at}`, at % 2 ? 'available' : 'sold');
    const { page, complaints, foreign } = await visit(browser, origin);
    await page.goto(origin);
    await page.getByLabel('API key').fill(store.key);
    await page.getByRole('button', { name: 'Open the store' }).click();

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
    expect(ada).toMatchObject({ name: 'Ada', categoryId: 9223372036854775807n, status: 'available' });
    expect(await rows.last().textContent()).toBe(`Adaavailableid ${ada.id} · category 9223372036854775807`);
    expect(await page.getByRole('status').textContent()).toBe(`Ada was added with the id ${ada.id}.`);

    // Another attempt at something else, and back at the list after a reload, as the tab knows the key.
    await page.getByLabel('Name').fill('x'.repeat(10_001));
    await page.getByLabel('Category').fill('1');
    await page.getByRole('button', { name: 'Add' }).click();
    expect(await page.getByRole('alert').textContent()).toMatch(/^name must .*BAD_USER_INPUT$/);
    await page.reload();
    await rows.nth(19).waitFor();

    await eachLook(page, 'react-list', async () => expect(await barriers(page)).toEqual([]));
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test('examples/react tells what is wrong with a key, and takes another', async () => {
    const { page, foreign } = await visit(browser, origin);
    await page.goto(origin);
    await eachLook(page, 'react-key', async () => expect(await barriers(page)).toEqual([]));
    await page.getByLabel('API key').fill('wrong');
    await page.getByRole('button', { name: 'Open the store' }).click();
    expect(await page.getByRole('alert').textContent()).toBe('The API key is not valid.UNAUTHENTICATED');
    await eachLook(page, 'react-wrong', async () => expect(await barriers(page)).toEqual([]));
    await page.getByRole('button', { name: 'Forget the key' }).click();
    await page.getByLabel('API key').fill(store.key);
    await page.getByRole('button', { name: 'Open the store' }).click();
    await page.getByText('No animals here yet.').waitFor();
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('the typed client is a module as it is, exact, on a page of another origin', async () => {
    const page = await browser.newPage();
    await page.route(`${origin}/client/**`, async (route) => {
      const path = new URL(route.request().url()).pathname.replace('/client/', '');
      const body = await readFile(`clients/typescript/dist/${path}`, 'utf8');
      await route.fulfill({ contentType: 'text/javascript', body });
    });
    await page.goto(origin);
    const load = "import { AnimalStore } from '/client/index.js'; globalThis.AnimalStore = AnimalStore;";
    await page.addScriptTag({ type: 'module', content: load });
    await page.waitForFunction('globalThis.AnimalStore');
    // Routes keep the browser's cache off.
    await page.unrouteAll();
    const shown = await page.evaluate(
      async ([url, key]) => {
        const { AnimalStore } = globalThis as unknown as typeof import('animal-store-client');
        const store = new AnimalStore({ url: `${url}`, key: `${key}` });
        for (const name of ['a', 'b', 'c']) await store.create({ name, categoryId: 9223372036854775807n });
        const walked: string[] = [];
        for await (const pet of store.pets({ limit: 2 })) walked.push(`${pet.name} ${pet.categoryId}`);
        const added: string[] = [];
        for await (const { name } of store.added({ after: 0 })) if (added.push(name) === 3) break;
        const { pets } = await store.graphql<{ pets: Array<{ categoryId: string }> }>('{ pets { categoryId } }');
        const refused = await store.page({ limit: 0 }).catch(({ code }) => code);
        // The same animals from the browser's cache, now with a page after them.
        const { next: none } = await store.page({ limit: 3 });
        await store.create({ name: 'd', categoryId: 1 });
        const { items, next } = await store.page({ limit: 3 });
        const links = none === undefined && next !== undefined && next === items[2]?.id;
        return { walked, added, categoryId: pets[0]?.categoryId, refused, links };
      },
      [store.origin, store.key],
    );
    expect(shown).toEqual({
      walked: ['a', 'b', 'c'].map((name) => `${name} 9223372036854775807`),
      added: ['a', 'b', 'c'],
      categoryId: '9223372036854775807',
      refused: 'BAD_USER_INPUT',
      links: true,
    });
    await page.close();
  });
});
