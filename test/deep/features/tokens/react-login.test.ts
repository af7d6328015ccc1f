import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from '../../../support/jest.ts';
import {
  eventually,
  freePort,
  killAll,
  runFile,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { type Store, startStore } from '../../../support/store.ts';
import { inBrowser, patience } from '../../support/browser.ts';
import { launch } from '../../support/chromium.ts';
import { audience, type Oidc, startOidc } from './oidc-provider.ts';

const vite = resolve('examples/react/node_modules/vite/bin/vite.js');

/** A page of one origin, with a service and a provider of two others. */
inBrowser(() => {
  let oidc: Oidc;
  let store: Store;
  let browser: Browser;
  let origin: string;
  const dist = mkdtempSync(join(tmpdir(), 'react-login-'));
  beforeAll(async () => {
    const port = `${await freePort()}`;
    origin = `http://127.0.0.1:${port}`;
    oidc = await startOidc({ page: origin, lifetime: 60 });
    store = await startStore({ ...oidc.env, CORS_ORIGINS: origin });
    const env = {
      ...process.env,
      VITE_ISSUER: oidc.issuer,
      VITE_AUDIENCE: audience,
      VITE_STORE_URL: store.origin,
    };
    const build = [
      vite,
      'build',
      '--logLevel',
      'warn',
      '--outDir',
      dist,
      '--emptyOutDir',
    ];
    await promisify(execFile)(process.execPath, build, {
      cwd: 'examples/react',
      env,
    });
    runFile(
      vite,
      ['preview', 'examples/react', '--outDir', dist, '--port', port],
      {},
    );
    await eventually(async () => (await fetch(origin)).ok);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await killAll();
    await store?.close();
    await oidc?.close();
    rmSync(dist, { recursive: true });
  });

  const create = (name: string) =>
    rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });

  async function logIn(page: Page, name: string): Promise<void> {
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByPlaceholder('Enter any login').fill(name);
    await page.getByPlaceholder('and password').fill('any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    await page.getByRole('button', { name: 'Continue' }).click();
  }

  test('examples/react with a login lists, creates, follows a live list over the end of its token, and logs out', async () => {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience);
    let tokens = 0;
    page.on('response', (response) => {
      if (
        response.url() === `${oidc.issuer}/token` &&
        response.request().method() === 'POST'
      )
        tokens += 1;
    });
    await create('before');
    await page.goto(origin);
    // The tokens of this login have two more seconds: thirty of them are
    // tolerance.
    oidc.behind = 88;
    await logIn(page, 'ada');
    await page.getByRole('listitem').filter({ hasText: 'before' }).waitFor();
    oidc.behind = 0;
    const log = page.getByRole('log');
    await create('first');
    await log.filter({ hasText: /^first$/ }).waitFor();

    // The service ends the live list, and the page begins another behind its
    // last animal, with a new token.
    const before = tokens;
    await eventually(async () => tokens > before);
    await create('second');
    await log.filter({ hasText: /^first, second$/ }).waitFor();
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('Category').fill('9223372036854775807');
    await page.getByRole('button', { name: 'Add' }).click();
    await log.filter({ hasText: /^first, second, Ada$/ }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect((await rest(store, '/v1/pets?limit=100')).json.at(-1)).toMatchObject(
      { name: 'Ada' },
    );

    // A reload keeps the login; the end of the session at the provider ends it.
    await page.reload();
    await page.getByRole('listitem').filter({ hasText: 'Ada' }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Yes, sign me out' }).click();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    expect(new URL(page.url()).origin).toBe(origin);
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    await page.close();
  });
});
