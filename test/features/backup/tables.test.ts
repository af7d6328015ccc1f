import { defineEntity, p } from '@mikro-orm/core';
import { tablesOf } from '#engine/features/backup/tables.js';
import { expect, test } from '../../support/jest.ts';

test('a table is copied after the tables that it references, with the columns of its relations, and so is the table of a many-to-many relation', () => {
  const Shop = defineEntity({
    name: 'Shop',
    tableName: 'shop',
    properties: {
      id: p.bigint().primary().autoincrement(),
      toys: () => p.oneToMany(Toy).mappedBy('shop'),
      tags: () => p.manyToMany(Tag),
    },
  });
  const Tag = defineEntity({
    name: 'Tag',
    properties: { id: p.bigint().primary().autoincrement() },
  });
  const Toy = defineEntity({
    name: 'Toy',
    tableName: 'a_toy',
    properties: {
      id: p.bigint().primary().autoincrement(),
      shop: () => p.manyToOne(Shop),
    },
  });
  expect(tablesOf({ entities: [Toy, Shop, Tag], migrations: [] })).toEqual([
    { name: 'shop', columns: { id: 'bigserial' }, key: ['id'], counted: 'id' },
    { name: 'tag', columns: { id: 'bigserial' }, key: ['id'], counted: 'id' },
    {
      name: 'shop_tags',
      columns: { shop_id: 'bigint', tag_id: 'bigint' },
      key: ['shop_id', 'tag_id'],
      counted: undefined,
    },
    {
      name: 'a_toy',
      columns: { id: 'bigserial', shop_id: 'bigint' },
      key: ['id'],
      counted: 'id',
    },
  ]);
});
