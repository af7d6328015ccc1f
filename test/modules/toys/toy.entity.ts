import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { LiveList } from '../../../src/records/live-list.ts';
import type { Records, Row } from '../../../src/records/records.ts';
import { type NewToy, ToyKind } from './toy.schemas.ts';

const toyTable = defineEntity({
  name: 'Toy',
  tableName: 'toy',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    name: p.text(),
    kind: p.enum(Object.values(ToyKind)),
    note: p.text().nullable(),
    madeAt: p.datetime(),
  },
  // Serves the filtered list.
  indexes: [{ properties: ['kind', 'id'] }],
});

export class ToyEntity extends toyTable.class {}
toyTable.setClass(ToyEntity);

/** A row, and the records. Toys have no rules of their own, so they need no service. */
export type Toy = Row<InferEntity<typeof toyTable>>;
export type Toys = Records<Toy, NewToy>;
export type LiveToys = LiveList<Toy>;
