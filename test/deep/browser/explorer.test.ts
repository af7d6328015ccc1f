import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { barriers, eachLook, hasBrowser, launch, visit } from '../support/browser.ts';
import { frameOrigin, sandboxFrame, sandboxScript } from '../support/sandbox.ts';

const inBrowser = hasBrowser ? describe : describe.skip;

inBrowser('in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', () => {
  const store = storeForAll();
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  beforeEach(() => store.empty());

  test('/graphql is Apollo Sandbox, where a user fills in the key and then sees schema and data', async () => {
    await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 9007199254740993n } });
    const { page, complaints, foreign } = await visit(browser, store.origin, {
      [script]: await sandboxScript(),
      [`${frameOrigin}/sandbox/explorer?`]: sandboxFrame,
    });
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.request().method() === 'POST') statuses.push(response.status());
    });
    await page.goto(`${store.origin}/graphql`);
    const frame = page.frameLocator('iframe');

    const settings = JSON.parse((await frame.locator('#settings').textContent()) ?? '');
    expect(settings).toEqual({
      endpoint: `${store.origin}/graphql`,
      defaultDocument: expect.any(String),
      defaultVariables: expect.any(String),
      defaultHeaders: '{"Authorization":"Bearer <API_KEY>"}',
      sendOperationHeadersInIntrospection: 'true',
      // No polling.
      shouldDefaultAutoupdateSchema: 'false',
      endpointIsEditable: 'false',
      hideCookieToggle: 'true',
      initialRequestConnectorsDebugging: 'false',
      initialRequestQueryPlan: 'false',
      parentSupportsSubscriptions: 'true',
      runTelemetry: 'false',
      version: '2.7.4',
    });
    expect(await page.getByText('Apollo Sandbox is loading').isVisible()).toBe(false);

    // The frame introspects as soon as it is there, with a placeholder for a key.
    await frame.locator('#schema', { hasText: 'UNAUTHENTICATED' }).waitFor();
    await frame.locator('#headers').fill(JSON.stringify({ Authorization: `Bearer ${store.key}` }));
    await frame.locator('#introspect').click();
    const names = { queryType: { name: 'Query' }, mutationType: { name: 'Mutation' } };
    await frame.locator('#schema', { hasText: JSON.stringify({ schema: { __schema: names } }) }).waitFor();
    await frame.locator('#run').click();
    const answer = await frame.locator('#response', { hasText: 'Rex' }).textContent();
    expect(JSON.parse(answer ?? '')).toMatchObject({
      status: 200,
      data: { pets: [{ id: expect.any(String), name: 'Rex', categoryId: '9007199254740993', status: 'available' }] },
    });

    expect(statuses).toEqual([401, 200, 200]);
    // The browser reports every 401; nothing else went wrong, the content security policy included.
    expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('/graphql uses the key of the tab in its own requests, and tells the frame nothing of it', async () => {
    const { page, foreign } = await visit(browser, store.origin, {
      [script]: await sandboxScript(),
      [`${frameOrigin}/sandbox/explorer?`]: sandboxFrame,
    });
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    await page.goto(store.origin);
    await page.evaluate((key) => sessionStorage.setItem('api-key', key), store.key);
    await page.goto(`${store.origin}/graphql`);
    const frame = page.frameLocator('iframe');
    await frame.locator('#schema', { hasText: '"__schema"' }).waitFor();
    await frame.locator('#run').click();
    await frame.locator('#response', { hasText: '"data"' }).waitFor();
    expect(await frame.locator('#headers').inputValue()).toBe('{"Authorization":"Bearer <API_KEY>"}');
    expect(addresses.filter((address) => address.includes(store.key))).toEqual([]);
    expect(await frame.locator('html').innerHTML()).not.toContain(store.key);
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('without internet /graphql says so, and leads to GraphiQL', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/graphql`);
    await eachLook(page, 'sandbox-offline', async () => {
      await page.getByRole('heading', { name: 'Apollo Sandbox cannot be loaded' }).waitFor();
      expect(await barriers(page)).toEqual([]);
    });
    // The browser reports the script that did not come, and that is all that the page asked for.
    expect(complaints).toEqual(['Failed to load resource: net::ERR_FAILED']);
    expect(foreign).toEqual([script]);
    await page.getByRole('link', { name: 'Open GraphiQL' }).click();
    await page.getByLabel('API key').waitFor();
    expect(page.url()).toBe(`${store.origin}/graphiql`);
    await page.close();
  });

  test('/graphiql lists and creates by mouse alone, and shows every id to its last digit', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/graphiql`);
    await page.getByText('Paste an API key to load the schema.').waitFor();
    await giveKey(page, store.key);
    await page.getByText('The schema is loaded.').waitFor();
    await execute(page);
    expect(await response(page, '"data"')).toEqual({ data: { pets: [] } });

    await page.getByLabel('Examples').selectOption('Add an animal');
    await execute(page);
    const created = await response(page, 'createPet');
    const rex = { id: expect.any(String), name: 'Rex', categoryId: '9007199254740993', status: 'available' };
    expect(created).toEqual({ data: { createPet: rex } });
    expect((await rest(store, '/v1/pets')).json).toMatchObject([{ name: 'Rex', categoryId: 9007199254740993n }]);

    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.getByRole('link', { name: 'Query', exact: true }).click();
    await page.getByText('What can be read. Every operation needs an API key.').waitFor();
    await page.getByRole('button', { name: 'Show History' }).click();
    const history = page.locator('.graphiql-history-items .graphiql-history-item-label');
    expect(await history.allTextContents()).toEqual(['AddPet', 'Pets']);
    await eachLook(page, 'graphiql', (look) => isAccessible(page, look));
    await page.setViewportSize({ width: 1280, height: 900 });
    await history.last().click();
    await execute(page);
    expect(await response(page, 'pets')).toEqual({ data: { pets: [{ ...rex, id: created.data.createPet.id }] } });

    // Of what a browser keeps when it is closed, the key is no part.
    const kept = await page.evaluate(() => JSON.stringify(Object.entries(localStorage)));
    expect(kept).toContain('AddPet');
    expect(kept).not.toContain(store.key);
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test('/graphiql builds a query of the fields that a user clicks', async () => {
    await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 9007199254740993n } });
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/graphiql`);
    await giveKey(page, store.key);
    await page.getByText('The schema is loaded.').waitFor();
    await page.getByRole('button', { name: 'Show GraphiQL Explorer' }).click();
    const builder = page.locator('.graphiql-explorer-root');
    await builder.locator('[data-arg-name="limit"] input').waitFor();
    await eachLook(page, 'graphiql-builder', async (look) => {
      expect([look, await barriers(page)]).toEqual([
        look,
        [...(look.endsWith('light') ? [pale] : []), ...builderFaults],
      ]);
    });
    await page.setViewportSize({ width: 1280, height: 900 });
    for (const field of ['id', 'status']) await builder.locator(`[data-field-name="${field}"]`).click();
    await execute(page);
    expect(await response(page, 'Rex')).toEqual({ data: { pets: [{ name: 'Rex', categoryId: '9007199254740993' }] } });
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });

  test('/graphiql sends a number beyond 2^53 as it was typed, and shows one as it came', async () => {
    const { page, complaints } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/graphiql`);
    await giveKey(page, store.key);
    await page.getByLabel('Examples').selectOption('Add an animal');
    await paste(page, 'Variables', '{ "pet": { "name": "Bo", "categoryId": -9223372036854775808, }, /* as it is */ }');
    await execute(page);
    expect(await response(page, 'createPet')).toMatchObject({
      data: { createPet: { name: 'Bo', categoryId: '-9223372036854775808' } },
    });

    await page.route(`${store.origin}/graphql`, (route) => route.fulfill({ body: '{"data":{"n":9007199254740993}}' }));
    await execute(page);
    expect(await text(page, '"n"')).toContain('9007199254740993');
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('/graphiql tells a wrong key in the words of the service, and forgets a key', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    await page.goto(`${store.origin}/graphiql`);
    await giveKey(page, 'wrong');
    await page.getByRole('status').getByText('The API key is not valid.').waitFor();
    // GraphiQL shows the schema's refusal as a response, which would replace that of an operation.
    await text(page, 'not valid');
    await execute(page);
    expect(await response(page, '"status"')).toEqual({
      errors: [{ message: 'The API key is not valid.', extensions: { code: 'UNAUTHENTICATED', status: 401 } }],
    });
    await page.getByRole('button', { name: 'Forget key' }).click();
    await page.getByText('Paste an API key to load the schema.').waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    // One for the schema, one for the operation.
    expect(complaints).toEqual(Array(2).fill(expect.stringContaining('401')));
    expect(foreign).toEqual([]);
    await page.close();
  });

  test('/graphiql follows what is added, live and to the last digit, until it is stopped', async () => {
    const { page, complaints, foreign } = await visit(browser, store.origin);
    const add = (name: string) =>
      rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: -9223372036854775807n } });
    const shown = (name: string) => ({
      data: { petAdded: { id: expect.any(String), name, categoryId: '-9223372036854775807', status: 'available' } },
    });
    await page.goto(`${store.origin}/graphiql`);
    await giveKey(page, store.key);
    await page.getByLabel('Examples').selectOption('Follow what is added');
    await execute(page);
    await eventually(async () => store.app.subscriptions.count === 1);
    await add('Rex');
    expect(await response(page, 'Rex')).toEqual(shown('Rex'));
    await add('Bo');
    expect(await response(page, 'Bo')).toEqual(shown('Bo'));

    const ended = page.waitForEvent('requestfailed');
    await page.getByRole('button', { name: /^Stop query/ }).click();
    expect((await ended).failure()?.errorText).toBe('net::ERR_ABORTED');
    await eventually(async () => store.app.subscriptions.count === 0);
    expect({ complaints, foreign }).toEqual({ complaints: [], foreign: [] });
    await page.close();
  });
});

const script = 'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';

/** GraphiQL's own faults: a tab contains the button that selects it, and an entry of the history is named by what it does. */
const tabs = expect.stringMatching(/^nested-interactive: <li [^>]*role="tab"/);
const labels = expect.stringMatching(/^label-content-name-mismatch: <button [^>]*graphiql-history-item-label/);

/** The builder's own faults (`@graphiql/plugin-explorer`): in the light its texts are pale, and two fields lack names. */
const pale = expect.stringMatching(/^color-contrast: <input [^>]*placeholder="Query Name"/);
const builderFaults = [
  expect.stringMatching(/^label: <input type="text" value="5"/),
  tabs,
  expect.stringMatching(/^select-name: <select style="flex-grow: 2;"> \(1\)$/),
];

async function isAccessible(page: Page, look: string): Promise<void> {
  // The editors are coloured by script, a moment later than the rest.
  await page
    .locator(look.endsWith('dark') ? '.monaco-editor.vs-dark' : '.monaco-editor.vs')
    .first()
    .waitFor();
  expect(await barriers(page)).toEqual([labels, tabs]);
}

async function giveKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Use key' }).click();
}

const execute = (page: Page) => page.getByRole('button', { name: /^Execute query/ }).click();

/** Replaces what is in an editor. */
async function paste(page: Page, editor: string, text: string): Promise<void> {
  await page.getByLabel(editor, { exact: true }).locator('.view-lines').first().click();
  await page.keyboard.press('Control+A');
  // Not typed: the editor would close what is open.
  await page.context().grantPermissions(['clipboard-write']);
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press('Control+V');
}

/** The response as it is shown, as soon as it contains `wanted`. */
async function text(page: Page, wanted: string): Promise<string> {
  const shown = page.locator('.result-window .view-lines');
  await shown.filter({ hasText: wanted }).waitFor();
  const lines = await shown.locator('.view-line').evaluateAll((elements) =>
    elements
      .map(({ style, textContent }) => ({ top: Number.parseInt(style.top, 10), textContent }))
      .sort((one, other) => one.top - other.top)
      .map(({ textContent }) => textContent),
  );
  // Monaco draws spaces that do not break.
  return lines.join('').replaceAll('\u00a0', ' ');
}

const response = async (page: Page, wanted: string) => JSON.parse(await text(page, wanted));
