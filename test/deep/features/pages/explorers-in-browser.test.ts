import type { Page } from 'playwright-core';
import { beforeEach, expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import {
  barriers,
  browserForAll,
  eachDisplay,
  inBrowser,
} from '../../support/browser.ts';
import { frameOrigin, sandboxFrame, sandboxScript } from './sandbox.ts';

inBrowser(() => {
  const store = storeForAll();
  const visit = browserForAll(store);
  beforeEach(() => store.empty());
  const openGraphiQL = async (page: Page, key = store.key) => {
    await page.goto('/graphiql');
    await giveKey(page, key);
  };
  const add = (name: string, categoryId: bigint) =>
    rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId } });

  test('/graphql is Apollo Sandbox: it uses the key that a user fills in, or that of the tab, which the frame never gets', async () => {
    await add('Rex', 9007199254740993n);
    const work = async (page: Page) => {
      const statuses: number[] = [];
      page.on('response', (response) => {
        if (response.request().method() === 'POST')
          statuses.push(response.status());
      });
      await page.goto('/graphql');
      const frame = page.frameLocator('iframe');
      expect(
        JSON.parse((await frame.locator('#settings').textContent()) ?? ''),
      ).toMatchObject({
        endpoint: `${store.origin}/graphql`,
        defaultHeaders: '{"Authorization":"Bearer <API_KEY>"}',
        sendOperationHeadersInIntrospection: 'true',
        // No polling.
        shouldDefaultAutoupdateSchema: 'false',
        endpointIsEditable: 'false',
        hideCookieToggle: 'true',
        parentSupportsSubscriptions: 'true',
        runTelemetry: 'false',
      });
      expect(
        await page.getByText('Apollo Sandbox is loading').isVisible(),
      ).toBe(false);

      // The frame introspects as soon as it is loaded, with a placeholder for a
      // key.
      await frame.locator('#schema', { hasText: 'UNAUTHENTICATED' }).waitFor();
      await frame
        .locator('#headers')
        .fill(JSON.stringify({ Authorization: `Bearer ${store.key}` }));
      await frame.locator('#introspect').click();
      const names = {
        queryType: { name: 'Query' },
        mutationType: { name: 'Mutation' },
      };
      await frame
        .locator('#schema', {
          hasText: JSON.stringify({ schema: { __schema: names } }),
        })
        .waitFor();
      await frame.locator('#run').click();
      const result = await frame
        .locator('#response', { hasText: 'Rex' })
        .textContent();
      const rex = {
        id: expect.any(String),
        name: 'Rex',
        categoryId: '9007199254740993',
        status: 'available',
      };
      expect(JSON.parse(result ?? '')).toMatchObject({
        status: 200,
        data: { pets: [rex] },
      });
      expect(statuses).toEqual([401, 200, 200]);

      const addresses: string[] = [];
      page.on('request', (request) => addresses.push(request.url()));
      await page.evaluate(
        (key) => sessionStorage.setItem('api-key', key),
        store.key,
      );
      await page.goto('/graphql');
      await frame.locator('#schema', { hasText: '"__schema"' }).waitFor();
      await frame.locator('#run').click();
      await frame.locator('#response', { hasText: '"data"' }).waitFor();
      expect(await frame.locator('#headers').inputValue()).toBe(
        '{"Authorization":"Bearer <API_KEY>"}',
      );
      expect(
        addresses.filter((address) => address.includes(store.key)),
      ).toEqual([]);
      expect(await frame.locator('html').innerHTML()).not.toContain(store.key);
    };
    const stubs = {
      [script]: await sandboxScript(),
      [`${frameOrigin}/sandbox/explorer?`]: sandboxFrame,
    };
    await visit(work, { stubs, isRefused: true });
  });

  test('without internet /graphql reports it, and links to GraphiQL', () =>
    visit(
      async (page) => {
        await page.goto('/graphql');
        await eachDisplay(page, async () => {
          await page
            .getByRole('heading', { name: 'Apollo Sandbox cannot be loaded' })
            .waitFor();
          expect(await barriers(page)).toEqual([]);
        });
        await page.getByRole('link', { name: 'Open GraphiQL' }).click();
        await page.getByLabel('API key').waitFor();
        expect(page.url()).toBe(`${store.origin}/graphiql`);
      },
      // The browser reports the script that failed to load. The page requested
      // nothing else.
      {
        errors: ['Failed to load resource: net::ERR_FAILED'],
        foreign: [script],
      },
    ));

  test('/graphiql says that it is loading before its styles and its script are there', () =>
    visit(async (page) => {
      let release: (value?: unknown) => void = () => undefined;
      const held = new Promise((resolve) => {
        release = resolve;
      });
      await page.route(/\.(?:css|js)$/, async (route) => {
        await held;
        await route.continue();
      });
      await page.goto('/graphiql', { waitUntil: 'commit' });
      const loading = page.getByText('GraphiQL is loading');
      await loading.waitFor();
      await page.screenshot();
      release();
      await page.getByText('Paste an API key to load the schema.').waitFor();
      expect(await loading.count()).toBe(0);
    }));

  test('/graphiql lists and creates by mouse alone, and shows every id exactly', () =>
    visit(async (page) => {
      await page.goto('/graphiql');
      await page.getByText('Paste an API key to load the schema.').waitFor();
      await giveKey(page, store.key);
      await page.getByText('The schema is loaded.').waitFor();
      await execute(page);
      expect(await response(page, '"data"')).toEqual({ data: { pets: [] } });

      await page.getByLabel('Examples').selectOption('Add an animal');
      await execute(page);
      const created = await response(page, 'createPet');
      const rex = {
        id: expect.any(String),
        name: 'Rex',
        categoryId: '9007199254740993',
        status: 'available',
      };
      expect(created).toEqual({ data: { createPet: rex } });
      expect((await rest(store, '/v1/pets')).json).toMatchObject([
        { name: 'Rex', categoryId: 9007199254740993n },
      ]);

      await page
        .getByRole('button', { name: 'Show Documentation Explorer' })
        .click();
      await page.getByRole('link', { name: 'Query', exact: true }).click();
      await page
        .getByText('What can be read. Every operation needs an API key.')
        .waitFor();
      await page.getByRole('button', { name: 'Show History' }).click();
      const history = page.locator(
        '.graphiql-history-items .graphiql-history-item-label',
      );
      expect(await history.allTextContents()).toEqual(['AddPet', 'Pets']);
      await eachDisplay(page, async (display) => {
        const found = await barriers(page);
        const faults = display.endsWith('dark')
          ? [labels, tabs, scrolled]
          : [labels, tabs];
        expect([display, found]).toEqual([display, faults]);
      });
      await page.setViewportSize({ width: 1280, height: 900 });
      await history.last().click();
      await execute(page);
      expect(await response(page, 'pets')).toEqual({
        data: { pets: [{ ...rex, id: created.data.createPet.id }] },
      });

      // A browser does not keep the key when it is closed.
      const kept = await page.evaluate(() =>
        JSON.stringify(Object.entries(localStorage)),
      );
      expect(kept).toContain('AddPet');
      expect(kept).not.toContain(store.key);
    }));

  test('/graphiql builds a query from the fields that a user clicks', async () => {
    await add('Rex', 9007199254740993n);
    await visit(async (page) => {
      await openGraphiQL(page);
      await page.getByText('The schema is loaded.').waitFor();
      await page
        .getByRole('button', { name: 'Show GraphiQL Explorer' })
        .click();
      const builder = page.locator('.graphiql-explorer-root');
      await builder.locator('[data-arg-name="limit"] input').waitFor();
      await eachDisplay(page, async (display) => {
        const found = await barriers(page);
        expect([display, found]).toEqual([display, builderFaults]);
      });
      await page.setViewportSize({ width: 1280, height: 900 });
      for (const field of ['id', 'status'])
        await builder.locator(`[data-field-name="${field}"]`).click();
      await execute(page);
      const pets = [{ name: 'Rex', categoryId: '9007199254740993' }];
      expect(await response(page, 'Rex')).toEqual({ data: { pets } });
    });
  });

  test('/graphiql sends and shows a number beyond 2^53 exactly', () =>
    visit(async (page) => {
      await openGraphiQL(page);
      await page.getByText('The schema is loaded.').waitFor();
      await page.getByLabel('Examples').selectOption('Add an animal');
      await paste(
        page,
        'Variables',
        '{ "pet": { "name": "Bo", "categoryId": -9223372036854775808 } }',
      );
      await execute(page);
      const bo = { name: 'Bo', categoryId: '-9223372036854775808' };
      expect(await response(page, 'createPet')).toMatchObject({
        data: { createPet: bo },
      });

      await page.route(`${store.origin}/graphql`, (route) =>
        route.fulfill({ body: '{"data":{"n":9007199254740993}}' }),
      );
      await execute(page);
      expect(await responseText(page, '"n"')).toContain('9007199254740993');

      // As in an older browser.
      await page.evaluate('delete JSON.rawJSON');
      await execute(page);
      await responseText(page, 'This browser would change a number to -9223');
    }));

  test('/graphiql shows the message of the service for a wrong key, and forgets a key', () =>
    visit(
      async (page) => {
        await openGraphiQL(page, 'wrong');
        await page
          .getByRole('status')
          .getByText('The API key is not valid.')
          .waitFor();
        // GraphiQL shows the refusal of the schema as a response, which would
        // replace that of an operation.
        await responseText(page, 'not valid');
        await execute(page);
        expect(await response(page, '"status"')).toEqual({
          errors: [
            {
              message: 'The API key is not valid.',
              extensions: { code: 'UNAUTHENTICATED', status: 401 },
            },
          ],
        });
        await page.getByRole('button', { name: 'Forget key' }).click();
        await page.getByText('Paste an API key to load the schema.').waitFor();
        expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
      },
      { isRefused: true },
    ));

  test('/graphiql shows new animals live, with exact digits, until it is stopped', () =>
    visit(async (page) => {
      await openGraphiQL(page);
      await page.getByText('The schema is loaded.').waitFor();
      await page.getByLabel('Examples').selectOption('Follow what is added');
      await execute(page);
      await eventually(async () => store.app.subscriptions.count === 1);
      for (const name of ['Rex', 'Bo']) {
        await add(name, -9223372036854775807n);
        const petAdded = {
          id: expect.any(String),
          name,
          categoryId: '-9223372036854775807',
          status: 'available',
        };
        expect(await response(page, name)).toEqual({ data: { petAdded } });
      }
      const ended = page.waitForEvent('requestfailed');
      await page.getByRole('button', { name: /^Stop query/ }).click();
      expect((await ended).failure()?.errorText).toBe('net::ERR_ABORTED');
      await eventually(async () => store.app.subscriptions.count === 0);
    }));
});

const script =
  'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';

/**
 * GraphiQL's own faults: a tab contains the button that selects it, and the
 * name of a history entry is its action.
 */
const tabs = expect.stringMatching(/^nested-interactive: <li [^>]*role="tab"/);
const labels = expect.stringMatching(
  /^label-content-name-mismatch: <button [^>]*graphiql-history-item-label/,
);

/** CodeMirror's: a hidden field of the editor has the focus, and scrolls it. */
const scrolled = expect.stringMatching(
  /^scrollable-region-focusable: <div class="CodeMirror-scroll"/,
);

/** The builder's own faults (`@graphiql/plugin-explorer`): nameless fields. */
const builderFaults = [
  expect.stringMatching(/^label: <input type="text" value="5"/),
  tabs,
  expect.stringMatching(/^select-name: <select style="flex-grow: 2;"> \(1\)$/),
];

async function giveKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Use key' }).click();
}

const execute = (page: Page) =>
  page.getByRole('button', { name: /^Execute query/ }).click();

/** Replaces the text of an editor. */
async function paste(page: Page, editor: string, text: string): Promise<void> {
  await page
    .getByRole('region', { name: editor, exact: true })
    .locator('.CodeMirror-lines')
    .click();
  await page.keyboard.press('Control+A');
  // Not typed, because the editor closes brackets that are typed.
  await page.keyboard.insertText(text);
}

/**
 * Returns the response that the page shows, as soon as it contains `wanted`.
 */
async function responseText(page: Page, wanted: string): Promise<string> {
  const shown = page.locator('.result-window .CodeMirror-code');
  await shown.filter({ hasText: wanted }).waitFor();
  // The editor shows only the lines that are in sight.
  return page.evaluate(
    `document.querySelector('.result-window .CodeMirror').CodeMirror.getValue()`,
  );
}

const response = async (page: Page, wanted: string) =>
  JSON.parse(await responseText(page, wanted));
