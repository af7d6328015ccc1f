import { Migration } from '@mikro-orm/migrations';
import type { Module } from '#engine/api/module.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import type { Repositories } from '../repositories/entity-records.ts';
import { type LiveToys, ToyEntity, type Toys } from './toy.entity.ts';
import { ToyResolver } from './toy.resolver.ts';
import { toyRoutes } from './toy.routes.ts';
import { newToySchema, toyLists, toySchema } from './toy.schemas.ts';

class CreateToy extends Migration {
  override up(): void {
    this.addSql(`
      create table "toy" (
        "id" bigserial primary key,
        "name" text not null,
        "kind" text not null,
        "note" text null,
        "made_at" timestamptz not null
      )`);
    this.addSql('create index "toy_kind_id_index" on "toy" ("kind", "id")');
    this.addSql(
      'create index "toy_made_at_id_index" on "toy" ("made_at", "id")',
    );
    this.addSql(
      'create index "toy_kind_made_at_id_index" on "toy" ("kind", "made_at", "id")',
    );
    this.addSql(
      'create index "toy_name_id" on "toy" (lower("name") collate "C", "id")',
    );
    this.addSql(
      'create index "toy_kind_name_id" on "toy" ("kind", lower("name") collate "C", "id")',
    );
    this.addSql(
      `alter table "toy" add constraint "toy_kind_check" check ("kind" in ('ball', 'bone', 'mouse'))`,
    );
  }
}

/**
 * Toys: a module of a list with a filter, a text that may be null, and a
 * timestamp. Their collection is a `Records`, or another `Repository`.
 */
export const toysOn = (Collection: Repositories): Module => ({
  tag: { name: 'Toys', description: 'What animals play with.' },
  entities: [ToyEntity],
  migrations: [{ name: '2026_11_21_100000_create_toy', class: CreateToy }],
  examples: [
    {
      title: 'List toys',
      document: 'query Toys {\n  toys(limit: 5) {\n    id\n    name\n  }\n}\n',
    },
  ],
  open({ database }) {
    const toys: Toys = new Collection(database, ToyEntity, toyLists);
    const live: LiveToys = new LiveList(toys);
    return {
      collections: [
        { name: 'toys', input: newToySchema, item: toySchema, service: toys },
      ],
      routes: (app) => toyRoutes(app, toys, live),
      resolvers: [new ToyResolver(toys, live)],
    };
  },
});

export const toysModule = toysOn(Records);
