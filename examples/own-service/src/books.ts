import type { Module } from '@animal-store/engine';
import { int64Schema, Records, textSchema } from '@animal-store/engine';
import { resource } from '@animal-store/engine/resources';
import { defineEntity } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

const book = resource({
  name: 'Book',
  description: 'A book.',
  path: '/books',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    title: textSchema({ maxLength: 200, description: 'The title.' }),
    number: int64Schema({ description: 'Its number.' }),
  },
  example: { title: 'On Growth and Form', number: 9780521458085n },
});

const BookEntity = defineEntity({
  name: 'Book',
  tableName: 'book',
  properties: book.columns,
});

class CreateBook extends Migration {
  override up(): void {
    this.addSql(
      'create table "book" ("id" bigserial primary key, "title" text not null, "number" bigint not null, "version" int not null default 1)',
    );
  }
}

export const booksModule: Module = {
  tag: { name: 'Books', description: 'All books.' },
  entities: [BookEntity],
  migrations: [{ name: '2026_12_01_000000_create_book', class: CreateBook }],
  open: ({ database }) => ({
    resources: [book.serve(new Records(database, BookEntity, book.lists))],
  }),
};
