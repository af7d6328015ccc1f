import { mkdir } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { launch } from '../../support/chromium.ts';

/**
 * Takes the pictures of README.md from a running service that is new and empty:
 * `KEY=ask_... node test/deep/features/pages/screenshots.ts`, with STORE_URL for
 * another address. No picture shows the key.
 */

const { KEY: key = '', STORE_URL: origin = 'http://127.0.0.1:4000' } =
  process.env;
const folder = 'docs/images';

async function create(name: string, categoryId: string): Promise<void> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  };
  const body = `{"name":"${name}","categoryId":${categoryId}}`;
  const { status } = await fetch(`${origin}/v1/pets`, {
    method: 'POST',
    headers,
    body,
  });
  if (status !== 201) throw new Error(`The creation of ${name} got ${status}.`);
}

const untilShown = (page: Page, text: string) =>
  page
    .locator('.result-window .CodeMirror-code')
    .filter({ hasText: text })
    .waitFor();

async function openGraphiQL(page: Page, example?: string): Promise<void> {
  await page.goto(`${origin}/graphiql`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Use key' }).click();
  await page.getByText('The schema is loaded.').waitFor();
  if (example) await page.getByLabel('Examples').selectOption(example);
  await page.getByRole('button', { name: /^Execute query/ }).click();
}

const pictures: Record<string, (page: Page) => Promise<unknown>> = {
  'front-page': async (page) => {
    await page.goto(origin);
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Use key' }).click();
    await page.getByText('is valid').waitFor();
  },
  'rest-reference': async (page) => {
    await page.goto(`${origin}/docs`);
    await page
      .locator('#operations-Pets-listPets .opblock-summary-control')
      .click();
    await page
      .locator('#operations-Pets-listPets .parameters')
      .first()
      .waitFor();
  },
  graphiql: async (page) => {
    await openGraphiQL(page);
    await untilShown(page, 'Rex');
  },
  'live-list': async (page) => {
    await openGraphiQL(page, 'Follow what is added');
    await page.getByRole('button', { name: /^Stop query/ }).waitFor();
    await page.waitForTimeout(1000);
    await create('Kim', '9223372036854775807');
    await untilShown(page, 'Kim');
  },
};

await mkdir(folder, { recursive: true });
await create('Rex', '9007199254740993');
await create('Tom', '5');
const browser = await launch();
for (const [name, show] of Object.entries(pictures)) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({
      viewport: { width: 1100, height: 700 },
      colorScheme,
    });
    await show(page);
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png` });
    await page.close();
  }
}
await browser.close();
