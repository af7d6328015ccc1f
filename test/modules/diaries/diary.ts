import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import {
  int64Schema,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';

export const diary = resource({
  name: 'Diary',
  description: 'A diary, which belongs to its writer.',
  path: '/diaries',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    title: textSchema({ maxLength: 200, description: 'Its title.' }),
    mood: textSchema({ maxLength: 20, description: 'Its mood.' }),
    pages: withDefault(
      Type.Integer({ minimum: 0, maximum: 1000, description: 'Its pages.' }),
      1,
    ),
  },
  owner: 'createdBy',
  filters: ['mood'],
  in: ['mood'],
  ranges: ['pages'],
});
export type Diary = ItemOf<typeof diary>;
export type NewDiary = NewOf<typeof diary>;

export const DiaryEntity = defineEntity({
  name: 'Diary',
  tableName: 'diary',
  properties: diary.columns,
  indexes: [
    { properties: ['createdBy', 'id'] },
    { properties: ['mood', 'id'] },
    { properties: ['createdBy', 'mood', 'id'] },
    { properties: ['pages', 'id'] },
    { properties: ['createdBy', 'pages', 'id'] },
    { properties: ['mood', 'pages', 'id'] },
    { properties: ['createdBy', 'mood', 'pages', 'id'] },
  ],
  // Each writer has titles of their own.
  uniques: [{ properties: ['createdBy', 'title'] }],
});

export const remark = resource({
  name: 'Remark',
  description: 'A remark in a diary.',
  path: '/remarks',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    diaryId: int64Schema({ description: 'The diary.' }),
    text: textSchema({ description: 'What it says.' }),
  },
  owner: 'createdBy',
  filters: ['diaryId'],
  relations: {
    diary: { by: 'diaryId', to: () => diary.type, list: 'remarks' },
  },
});
export type Remark = ItemOf<typeof remark>;
export type NewRemark = NewOf<typeof remark>;

export const RemarkEntity = defineEntity({
  name: 'Remark',
  tableName: 'remark',
  properties: {
    ...remark.columns,
    diaryId: () =>
      p
        .manyToOne(DiaryEntity)
        .mapToPk()
        .joinColumn('diary_id')
        .deleteRule('cascade'),
  },
  indexes: [
    { properties: ['createdBy', 'id'] },
    { properties: ['diaryId', 'id'] },
    { properties: ['createdBy', 'diaryId', 'id'] },
  ],
});
