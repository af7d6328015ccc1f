import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { badInput } from '#engine/errors.js';
import {
  int64Schema,
  nullable,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';

const text = (description: string) =>
  Type.Optional(nullable(textSchema({ maxLength: 100, description })));

const operations = [
  ...(['list', 'find', 'create', 'createMany'] as const),
  ...(['change', 'remove', 'follow'] as const),
];

/** Staff know all, guests and helpers a part, and support no notes of others. */
export const card = resource({
  name: 'Card',
  description: 'What is known of a guest.',
  path: '/cards',
  operations,
  members: {
    name: textSchema({ maxLength: 100, description: 'The name.' }),
    phone: text('The number.'),
    code: text('Of the file.'),
    risk: withDefault(
      Type.Integer({ minimum: 0, maximum: 9, description: 'How much.' }),
      1,
    ),
    note: withDefault(
      textSchema({ maxLength: 100, description: 'What staff think.' }),
      '',
    ),
    login: text('Whose it is.'),
    helper: text('Who helps.'),
  },
  computed: {
    summary: {
      schema: textSchema({ description: 'The note, and the risk.' }),
      of: ({ note, risk }) => `${note} ${risk}`,
    },
  },
  transitions: {
    calm: {
      description: 'Lowers the risk by one.',
      change({ risk, note }) {
        if (note === 'never') throw badInput(`Its note says ${note}.`);
        return { risk: Math.max(0, risk - 1) };
      },
    },
  },
  audiences: [
    { scope: 'wards', rows: { clinic: 'tenant' } },
    {
      scope: 'guests',
      rows: { clinic: 'tenant', login: 'subject' },
      hides: ['code', 'risk', 'note', 'summary'],
      writes: ['name', 'phone'],
      fixed: ['name'],
      does: ['calm'],
    },
    {
      scope: 'helpers',
      rows: { clinic: 'tenant', helper: 'subject' },
      hides: ['code', 'note', 'summary'],
      writes: ['phone', 'risk'],
    },
    { scope: 'wards:all', rows: {}, hides: ['note', 'summary'] },
  ],
  filters: ['note', 'risk', 'phone'],
  in: ['risk'],
  combinations: [['note'], ['risk'], ['phone']],
  ranges: ['risk'],
});
export type Card = ItemOf<typeof card>;
export type NewCard = NewOf<typeof card>;

/** For each audience, and each combination of filters. */
function indexesFor(combinations: string[][], orders: string[][]) {
  const views = [[], ['clinic'], ['clinic', 'login'], ['clinic', 'helper']];
  const all = views.flatMap((view) =>
    [[], ...combinations].flatMap((one) =>
      orders.map((order) => [...new Set([...view, ...one, ...order]), 'id']),
    ),
  );
  const named = all
    .filter((one) => `${one}` !== 'id')
    .map((one) => [one.join('_').toLowerCase(), one] as const);
  return [...new Map(named)].map(([name, properties]) => ({
    name: `by_${name}`,
    properties: properties as never,
  }));
}

export const CardEntity = defineEntity({
  name: 'Card',
  tableName: 'card',
  properties: card.columns,
  indexes: indexesFor([['note'], ['risk'], ['phone']], [[], ['risk']]),
  uniques: [
    { properties: ['clinic', 'code'] },
    { properties: ['clinic', 'phone', 'risk'] },
  ],
});

export const visit = resource({
  name: 'Visit',
  description: 'A visit of a guest.',
  path: '/visits',
  operations,
  members: {
    cardId: int64Schema({ description: 'The guest.' }),
    room: textSchema({ maxLength: 20, description: 'Where it is.' }),
    login: text('Whose it is.'),
  },
  audiences: [
    { scope: 'wards', rows: { clinic: 'tenant' } },
    {
      scope: 'guests',
      rows: { clinic: 'tenant', login: 'subject' },
      hides: ['cardId'],
    },
    { scope: 'wards:all', rows: {} },
  ],
  filters: ['cardId'],
  relations: {
    card: { by: 'cardId', to: () => card.type, list: 'visits' },
  },
});
export type Visit = ItemOf<typeof visit>;
export type NewVisit = NewOf<typeof visit>;

export const VisitEntity = defineEntity({
  name: 'Visit',
  tableName: 'visit',
  properties: {
    ...visit.columns,
    cardId: () =>
      p
        .manyToOne(CardEntity)
        .mapToPk()
        .joinColumn('card_id')
        .deleteRule('cascade'),
  },
  indexes: [
    { properties: ['cardId', 'id'] },
    { properties: ['clinic', 'id'] },
    { properties: ['clinic', 'login', 'id'] },
    { properties: ['login', 'cardId', 'id'] },
  ],
});
