import { resolve } from 'node:path';
import { run } from '@animal-store/engine/cli';
import { start } from '@animal-store/engine/main';
import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import type { Service } from '#engine/feature.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { booksModule } from '../../examples/own-service/src/books.ts';
import { library } from './library.ts';
import { migrationOf } from './migrations.ts';

const file = resource({
  name: 'File',
  description: 'A file of a town.',
  path: '/files',
  operations: ['list', 'find', 'create'],
  members: { title: textSchema({ description: 'What it is about.' }) },
  owner: { member: 'town', by: 'tenant' },
});
const FileEntity = defineEntity({
  name: 'File',
  tableName: 'file',
  properties: file.columns,
  indexes: [{ properties: ['town', 'id'] }],
});
const files: Module = {
  tag: { name: 'Files', description: 'The files of towns.' },
  entities: [FileEntity],
  migrations: [
    migrationOf('2027_07_01_000000_create_file', [
      'create table file (id bigserial primary key, title text not null, town text not null, version int not null default 1)',
      'create index on file (town, id)',
    ]),
  ],
  open({ database }) {
    const records = new Records<any, any>(database, FileEntity, file.lists);
    return { resources: [file.serve(records)] };
  },
};

/** A service whose first collection belongs to tenants. */
const archive: Service = {
  ...library,
  name: 'town-archive',
  modules: async () => [files, booksModule],
};

if (process.argv[1] === resolve(import.meta.filename))
  await run(archive, () => start(archive, import.meta.filename));
