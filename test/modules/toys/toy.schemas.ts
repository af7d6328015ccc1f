import { type Static, Type } from 'typebox';
import { listQuery } from '#engine/validation/list-query.js';
import {
  enumSchema,
  int64Schema,
  itemSchema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { type Input } from '#engine/validation/validator.js';

/** What a toy is for. */
export const ToyKind = { ball: 'ball', bone: 'bone', mouse: 'mouse' } as const;
export type ToyKind = (typeof ToyKind)[keyof typeof ToyKind];

const kind = enumSchema('ToyKind', ToyKind, 'What the toy is for.');

/** The members that both a toy and its input have. */
const members = {
  name: textSchema({ description: 'Its name.' }),
  kind,
  note: Type.Optional(
    nullable(textSchema({ description: 'Anything else about it.' })),
  ),
  madeAt: moment({ description: 'When it was made.' }),
};

export const newToySchema = Type.Object(members, {
  $id: 'NewToy',
  description: 'A toy to be added.',
});

/** The input of a creation. */
export type NewToy = Input<typeof newToySchema>;

export const toySchema = itemSchema(
  { id: int64Schema({ description: 'Its identifier.' }), ...members },
  { $id: 'Toy', description: 'A toy of the store.' },
);

/** What the lists of toys are filtered and sorted by. */
export const toyLists = {
  in: ['kind'],
  ranges: ['madeAt'],
  prefixes: ['name'],
} as const;
export const toyQuerySchema = listQuery('toy', toySchema, toyLists);

/** A toy of the store. */
export interface Toy extends Readonly<Static<typeof toySchema>> {}
