import { defineEntity, p } from '@mikro-orm/core';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { int64Schema, textSchema } from '#engine/validation/schemas.js';
import { PetEntity } from '../../../src/pets/pet.entity.ts';
import { PetType } from '../../../src/pets/pet.types.ts';

export const tag = resource({
  name: 'Tag',
  description: 'A word that marks animals.',
  path: '/tags',
  operations: ['list', 'find', 'create', 'createMany', 'change', 'remove'],
  members: { name: textSchema({ maxLength: 100, description: 'The word.' }) },
  filters: ['name'],
});
export type Tag = ItemOf<typeof tag>;
export type NewTag = NewOf<typeof tag>;

export const TagEntity = defineEntity({
  name: 'Tag',
  tableName: 'tag',
  properties: tag.columns,
  uniques: [{ properties: ['name'] }],
});

export const petTag = resource({
  name: 'PetTag',
  description: 'An animal has a tag.',
  path: '/pet-tags',
  operations: ['list', 'find', 'create', 'remove'],
  members: {
    petId: int64Schema({ description: 'The animal.' }),
    tagId: int64Schema({ description: 'Its tag.' }),
  },
  filters: ['petId', 'tagId'],
  relations: {
    pet: {
      by: 'petId',
      to: () => PetType,
      across: { list: 'tags', relation: 'tag' },
    },
    tag: {
      by: 'tagId',
      to: () => tag.type,
      across: { list: 'pets', relation: 'pet' },
    },
  },
});
export type PetTag = ItemOf<typeof petTag>;
export type NewPetTag = NewOf<typeof petTag>;

export const PetTagEntity = defineEntity({
  name: 'PetTag',
  tableName: 'pet_tag',
  properties: {
    ...petTag.columns,
    petId: () =>
      p
        .manyToOne(PetEntity)
        .mapToPk()
        .joinColumn('pet_id')
        .deleteRule('cascade'),
    tagId: () =>
      p
        .manyToOne(TagEntity)
        .mapToPk()
        .joinColumn('tag_id')
        .deleteRule('cascade'),
  },
  indexes: [{ properties: ['petId', 'id'] }, { properties: ['tagId', 'id'] }],
  uniques: [{ properties: ['petId', 'tagId'] }],
});
