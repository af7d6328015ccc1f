import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from '../../../support/folder.ts';
import { beforeAll, test } from '../../../support/jest.ts';
import { storeForAll } from '../../../support/store.ts';
import { browserForAll, inBrowser } from '../../support/browser.ts';

inBrowser(() => {
  const env: Record<string, string> = {};
  beforeAll(async () => {
    env.TRUSTED_DOCUMENTS = join(await newFolder(), 'manifest.json');
    writeFileSync(env.TRUSTED_DOCUMENTS, '{}');
  });
  const store = storeForAll(env);
  const visit = browserForAll(store);

  test('the front page works where only registered GraphQL documents run', () =>
    visit(async (page) => {
      await page.goto('/');
      await page.getByLabel('API key').fill(store.key);
      await page.keyboard.press('Enter');
      await page.getByText('Live: new animals appear by themselves.').waitFor();
      const form = page.locator('#create');
      await form.getByLabel('Name').fill('Rex');
      await form.getByLabel('Category id').fill('5');
      await form.getByRole('button', { name: 'Add', exact: true }).click();
      await page.locator('tr.new', { hasText: 'Rex' }).waitFor();
    }));
});
