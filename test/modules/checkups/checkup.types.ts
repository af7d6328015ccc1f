import { registerEnumType } from 'type-graphql';
import { Type } from 'typebox';
import {
  argumentsOf,
  inputTypeOf,
  objectTypeOf,
} from '#engine/api/graphql/members.js';
import {
  CheckupState,
  checkupChangeSchema,
  checkupQuerySchema,
  checkupSchema,
  newCheckupSchema,
} from './checkup.schemas.ts';

registerEnumType(CheckupState, {
  name: 'CheckupState',
  description: 'Whether the checkup has taken place.',
});

export const CheckupType = objectTypeOf(checkupSchema);
export const CheckupArguments = argumentsOf(checkupQuerySchema);
/** Of a list whose animal is known. */
export const CheckupOfPetArguments = argumentsOf(
  Type.Omit(checkupQuerySchema, ['petId']),
);
export const NewCheckupInput = inputTypeOf(newCheckupSchema);
export const CheckupChange = inputTypeOf(checkupChangeSchema);
