import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { complete } from '#engine/feature.js';
import { changes } from '#engine/features/changes/index.js';
import { contracts } from '#engine/process/contracts.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { expect, test } from '../../support/jest.ts';
import { serviceOf } from '../../support/service.ts';

/** A change has an item twice: 100 of them are a page. */
async function start(maxLength: number, trace: object | true) {
  const scroll = resource({
    name: 'Scroll',
    description: 'A scroll.',
    path: '/scrolls',
    operations: ['list'],
    members: { text: textSchema({ maxLength, description: 'Its words.' }) },
    trace: trace as true,
  });
  const ScrollEntity = defineEntity({
    name: 'Scroll',
    tableName: 'scroll',
    properties: scroll.columns,
  });
  const scrolls: Module = {
    tag: { name: 'Scrolls', description: 'Scrolls.' },
    entities: [ScrollEntity],
    keepsChanges: true,
    open({ database }) {
      const records = new Records(database, ScrollEntity, scroll.lists);
      return { resources: [scroll.serve(records)] };
    },
  };
  await contracts(complete(serviceOf([scrolls], [changes])));
}

test('a start refuses a trace of which a page could exceed 16 MiB', async () => {
  await expect(start(13_982, true)).rejects.toThrow(
    'A page of changes of scrolls could exceed 16 MiB: text have up to 13982 characters in all; at most 13981 are allowed.',
  );
  await start(13_981, true);
  await start(13_982, { except: ['text'] });
});
