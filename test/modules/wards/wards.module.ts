import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import { select } from '#engine/records/select.js';
import {
  int64Schema,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { migrationOf } from '../../support/migrations.ts';
import type { Repositories } from '../repositories/entity-records.ts';
import {
  type Card,
  CardEntity,
  card,
  type NewCard,
  type NewVisit,
  type Visit,
  VisitEntity,
  visit,
} from './card.ts';

const noteCount = Type.Object(
  {
    note: nullable(textSchema({ description: 'The note.' })),
    count: int64Schema({ description: 'How many.' }),
  },
  { $id: 'NoteCount', description: 'A note of cards.' },
);
const notes = operation({
  name: 'cardNotes',
  description: 'How many cards have each note.',
  path: '/card-notes',
  input: Type.Object({}),
  output: Type.Array(noteCount, { $id: 'NoteCounts', maxItems: 100 }),
});
const allCards = operation({
  name: 'allCards',
  description: 'All cards.',
  path: '/all-cards',
  input: Type.Object({}),
  output: Type.Array(card.schemas.item, { $id: 'AllCards', maxItems: 100 }),
});

const ownCards = operation({
  name: 'ownCards',
  description: 'The cards of a guest.',
  path: '/own-cards',
  input: Type.Object({}),
  output: Type.Array(card.schemas.item, { $id: 'OwnCards', maxItems: 100 }),
  scope: 'guests',
});
const greeting = operation({
  name: 'greet',
  description: 'Leaves a card.',
  path: '/greetings',
  input: Type.Object(
    { name: textSchema({ description: 'The name.' }) },
    { $id: 'Greeting', description: 'What a guest says.' },
  ),
  output: card.schemas.item,
  creates: [CardEntity],
  scope: 'guests',
});

const newCard = validator(card.schemas.input);

/** Callers who see and set a part of the members of rows. */
export const wardsOn = (Collection: Repositories): Module[] => [
  {
    tag: { name: 'Wards', description: 'Cards of guests.' },
    entities: [CardEntity, VisitEntity],
    migrations: [
      migrationOf('2027_03_04_000000_create_wards', [
        `create table "card" ("id" bigserial primary key, "name" text not null, "phone" text, "code" text,
          "risk" int not null, "note" text not null, "login" text, "helper" text,
          "clinic" text not null, "version" int not null default 1, unique ("clinic", "code"),
          unique ("clinic", "phone", "risk"))`,
        'create unique index "card_clinic" on "card" ("clinic", "id")',
        `create table "visit" ("id" bigserial primary key,
          "card_id" bigint not null, "room" text not null,
          "login" text, "clinic" text not null, "version" int not null default 1,
          foreign key ("clinic", "card_id") references "card" ("clinic", "id") on delete cascade)`,
        'create index "visit_card" on "visit" ("card_id", "id")',
      ]),
    ],
    open({ database }) {
      const cards = new Collection<Card, NewCard>(
        database,
        CardEntity,
        card.lists,
      );
      const visits = new Collection<Visit, NewVisit>(
        database,
        VisitEntity,
        visit.lists,
      );
      return {
        service: { cards, visits },
        resources: [
          card.serve(cards),
          visit.serve(visits, { related: { card: cards } }),
          notes.serve(
            database,
            (_, call) => select(call, noteCount)`
              select note, count(*) as count from ${cards} as card group by 1 order by 1 nulls first`,
          ),
          allCards.serve(
            database,
            (_, call) => select(call, cards)`
              select * from ${cards} as card order by id limit 100`,
          ),
          ownCards.serve(
            database,
            (_, call) => select(call, cards)`
              select * from ${cards} as card order by id limit 100`,
          ),
          greeting.serve(database, (input, call) =>
            cards.create(newCard(input), call),
          ),
        ],
      };
    },
  },
  { tag: { name: 'Guests', description: 'Guests.' }, open: () => ({}) },
  { tag: { name: 'Helpers', description: 'Helpers.' }, open: () => ({}) },
];
