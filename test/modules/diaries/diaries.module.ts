import type { Module } from '#engine/api/module.js';
import { Records } from '#engine/records/records.js';
import { migrationOf } from '../../support/migrations.ts';
import type { Repositories } from '../repositories/entity-records.ts';
import {
  type Diary,
  DiaryEntity,
  diary,
  type NewDiary,
  type NewRemark,
  type Remark,
  RemarkEntity,
  remark,
} from './diary.ts';

/** @param options in place of their own: `{ owner }` */
export const openDiariesOn =
  (Collection: Repositories, options: object = {}): Module['open'] =>
  ({ database }) => {
    const diaries = new Collection<Diary, NewDiary>(database, DiaryEntity, {
      ...diary.lists,
      ...options,
    });
    const remarks = new Collection<Remark, NewRemark>(database, RemarkEntity, {
      ...remark.lists,
      ...options,
    });
    return {
      resources: [
        diary.serve(diaries),
        remark.serve(remarks, { related: { diary: diaries } }),
      ],
    };
  };

/** Rows that belong to their callers. */
export const diariesOn = (Collection: Repositories): Module => ({
  tag: { name: 'Diaries', description: 'Diaries of callers.' },
  entities: [DiaryEntity, RemarkEntity],
  migrations: [
    migrationOf('2027_03_01_000000_create_diaries', [
      `create table "diary" ("id" bigserial primary key, "title" text not null, "mood" text not null,
        "pages" int not null, "created_by" text not null, "version" int not null default 1)`,
      'create index "diary_created_by_id_index" on "diary" ("created_by", "id")',
      'create index "diary_mood_id_index" on "diary" ("mood", "id")',
      'create index "diary_created_by_mood_id_index" on "diary" ("created_by", "mood", "id")',
      'create index "diary_pages_id_index" on "diary" ("pages", "id")',
      'create index "diary_created_by_pages_id_index" on "diary" ("created_by", "pages", "id")',
      'create index "diary_mood_pages_id_index" on "diary" ("mood", "pages", "id")',
      'create index "diary_created_by_mood_pages_id_index" on "diary" ("created_by", "mood", "pages", "id")',
      'alter table "diary" add constraint "diary_created_by_title_unique" unique ("created_by", "title")',
      `create table "remark" ("id" bigserial primary key, "diary_id" bigint not null, "text" text not null,
        "created_by" text not null, "version" int not null default 1)`,
      'create index "remark_created_by_id_index" on "remark" ("created_by", "id")',
      'create index "remark_diary_id_id_index" on "remark" ("diary_id", "id")',
      'create index "remark_created_by_diary_id_id_index" on "remark" ("created_by", "diary_id", "id")',
      `alter table "remark" add constraint "remark_diary_id_foreign" foreign key ("diary_id")
        references "diary" ("id") on delete cascade`,
    ]),
  ],
  open: openDiariesOn(Collection),
});

export const diariesModule = diariesOn(Records);
