import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { expect, test } from '../../../support/jest.ts';
import { migrationOf } from '../../../support/migrations.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';
import { browserForAll, inBrowser } from '../../support/browser.ts';

/** The table of a collection with `follow: 'all'`. */

const card = resource({
  name: 'Card',
  description: 'A card.',
  path: '/cards',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    text: textSchema({ description: 'What it says.' }),
    state: textSchema({ maxLength: 100, description: 'Its state.' }),
  },
  filters: ['state'],
  trace: true,
  follow: 'all',
});
const CardEntity = defineEntity({
  name: 'Card',
  tableName: 'card',
  properties: card.columns,
  indexes: [{ properties: ['state', 'id'] }],
});
const cardsModule: Module = {
  tag: { name: 'Cards', description: 'Cards.' },
  entities: [CardEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_05_000000_create_card', [
      'create table card (id bigserial primary key, text text not null, state text not null, version int not null default 1)',
      'create index on card (state, id)',
    ]),
  ],
  open({ database }) {
    const records = new Records<ItemOf<typeof card>, NewOf<typeof card>>(
      database,
      CardEntity,
      card.lists,
    );
    return { resources: [card.serve(records)] };
  },
};

inBrowser(() => {
  const store = storeForAll({}, undefined, { more: [cardsModule] });
  const visit = browserForAll(store);
  const ask = async (method: string, id = '', json?: object) =>
    (await rest(store, `/v1/cards${id}`, { method, json })).json;
  const add = (text: string) => ask('POST', '', { text, state: 'open' });

  test('a changed row is shown as it is now, and a removed one goes, also with a filter', () =>
    visit(async (page) => {
      const tea = await add('tea');
      const milk = await add('milk');
      await page.goto('/?collection=cards');
      await page.getByLabel('API key').fill(store.key);
      await page.keyboard.press('Enter');
      await page.getByText('Live: new cards appear by themselves.').waitFor();
      const row = (text: string) =>
        page.locator('#items tr', { hasText: text });
      const shown = async (...all: string[]) => {
        await page
          .locator('#items tr')
          .nth(all.length)
          .waitFor({ state: 'detached' });
        for (const text of all) await row(text).waitFor();
      };
      await shown('tea', 'milk');
      await ask('PATCH', `/${tea.id}`, { text: 'green', version: 1 });
      await row('green').waitFor();
      expect(await row('tea').count()).toBe(0);
      await ask('DELETE', `/${milk.id}`);
      await shown('green');
      await add('new');
      await page.locator('tr.new', { hasText: 'new' }).waitFor();
      const state = page.locator('#filters').getByLabel('State');
      await state.fill('open');
      await page.keyboard.press('Tab');
      await page.waitForURL(/state=open/);
      await page.getByText('Live: new cards appear by themselves.').waitFor();
      await ask('PATCH', `/${tea.id}`, { state: 'done', version: 2 });
      await shown('new');
    }));
});
