import { Type } from 'typebox';
import { pageQueryMembers } from '../../../src/validation/page.ts';
import { enumSchema, int64Schema, moment, nullable, textSchema } from '../../../src/validation/schemas.ts';
import { type Input } from '../../../src/validation/validator.ts';

/** What a toy is for. */
export const ToyKind = { ball: 'ball', bone: 'bone', mouse: 'mouse' } as const;
export type ToyKind = (typeof ToyKind)[keyof typeof ToyKind];

const kind = enumSchema('ToyKind', ToyKind, 'What the toy is for.');
const madeAt = moment({ description: 'When it was made.' });

export const newToySchema = Type.Object(
  {
    name: textSchema({ description: 'Its name.' }),
    kind,
    note: Type.Optional(nullable(textSchema({ description: 'Anything else about it.' }))),
    madeAt,
  },
  { $id: 'NewToy', description: 'A toy to be added.' },
);

/** The input of a creation. */
export type NewToy = Input<typeof newToySchema>;

export const toyQuerySchema = Type.Object({
  kind: Type.Optional(kind),
  ...pageQueryMembers('toy'),
});

export const toySchema = Type.Object(
  {
    id: int64Schema({ description: 'Its identifier.' }),
    name: Type.String(),
    kind,
    note: nullable(Type.String()),
    madeAt,
  },
  { $id: 'Toy', description: 'A toy of the store.' },
);
