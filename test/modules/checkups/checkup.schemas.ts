import { type Static, Type } from 'typebox';
import { pageQueryMembers } from '#engine/validation/page.js';
import {
  changeSchema,
  decimalSchema,
  enumSchema,
  int64Schema,
  itemSchema,
  nullable,
  textSchema,
  use,
  versionSchema,
  withDefault,
} from '#engine/validation/schemas.js';
import { type Input } from '#engine/validation/validator.js';

export const CheckupState = { planned: 'planned', done: 'done' } as const;
export type CheckupState = (typeof CheckupState)[keyof typeof CheckupState];

const petId = int64Schema({ description: 'The animal.' });
const state = enumSchema(
  'CheckupState',
  CheckupState,
  'Whether the checkup has taken place.',
);
/** What can be changed of a checkup: it stays with its animal. */
const members = {
  reason: textSchema({ minLength: 3, description: 'Why the animal comes.' }),
  note: Type.Optional(
    nullable(textSchema({ description: 'What the vet found.' })),
  ),
  price: Type.Optional(
    nullable(
      decimalSchema(38, 2, {
        description: 'What it costs.',
        examples: ['12.50'],
      }),
    ),
  ),
};

export const newCheckupSchema = Type.Object(
  {
    petId,
    ...members,
    state: withDefault(
      use(state, '`planned` when omitted.'),
      CheckupState.planned,
    ),
  },
  { $id: 'NewCheckup', description: 'A checkup to be added.' },
);
export type NewCheckup = Input<typeof newCheckupSchema>;

export const checkupChangeSchema = changeSchema(
  { ...members, state },
  {
    $id: 'CheckupChange',
    description:
      'What to change of a checkup: null clears, absent members stay.',
  },
);

export const checkupQuerySchema = Type.Object({
  petId: Type.Optional(petId),
  state: Type.Optional(use(state, 'Only those in this state.')),
  ...pageQueryMembers('checkup'),
});

export const checkupSchema = itemSchema(
  {
    id: int64Schema({ description: 'Its identifier.' }),
    petId,
    ...members,
    state,
    version: versionSchema,
  },
  { $id: 'Checkup', description: 'A checkup of an animal.' },
);
export interface Checkup extends Readonly<Static<typeof checkupSchema>> {}
