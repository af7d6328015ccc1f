import { Type } from 'typebox';
import { pageQueryMembers } from '../../../src/validation/page.ts';
import {
  changeSchema,
  decimalSchema,
  enumSchema,
  int64Schema,
  nullable,
  textSchema,
  use,
  versionSchema,
  withDefault,
} from '../../../src/validation/schemas.ts';
import { type Input } from '../../../src/validation/validator.ts';

const petId = int64Schema({ description: 'The animal.' });
const reason = textSchema({ minLength: 3, description: 'Why the animal comes.' });
export const CheckupState = { planned: 'planned', done: 'done' } as const;
export type CheckupState = (typeof CheckupState)[keyof typeof CheckupState];

const state = enumSchema('CheckupState', CheckupState, 'Whether the checkup has taken place.');
const note = nullable(textSchema({ description: 'What the vet found.' }));
const price = nullable(decimalSchema(38, 2, { description: 'What it costs.' }));

export const newCheckupSchema = Type.Object(
  {
    petId,
    reason,
    state: withDefault(use(state, '`planned` when omitted.'), CheckupState.planned),
    note: Type.Optional(note),
    price: Type.Optional(price),
  },
  { $id: 'NewCheckup', description: 'A checkup to be added.' },
);
export type NewCheckup = Input<typeof newCheckupSchema>;

/** A checkup stays with its animal. */
export const checkupChangeSchema = changeSchema(
  { reason, state, note, price },
  { $id: 'CheckupChange', description: 'What to change of a checkup.' },
);

export const checkupQuerySchema = Type.Object({
  petId: Type.Optional(petId),
  state: Type.Optional(use(state, 'Only those in this state.')),
  ...pageQueryMembers('checkup'),
});

export const checkupSchema = Type.Object(
  {
    id: int64Schema({ description: 'Its identifier.' }),
    petId,
    reason: Type.String(),
    state,
    note,
    price,
    version: versionSchema,
  },
  { $id: 'Checkup', description: 'A checkup of an animal.' },
);
