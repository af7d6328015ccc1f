import { registerEnumType } from 'type-graphql';
import { inputTypeOf, objectTypeOf } from '../../../src/api/graphql/members.ts';
import {
  CheckupState,
  checkupChangeSchema,
  checkupSchema,
  newCheckupSchema,
} from './checkup.schemas.ts';

registerEnumType(CheckupState, {
  name: 'CheckupState',
  description: 'Whether the checkup has taken place.',
});

export const CheckupType = objectTypeOf(checkupSchema);
export const NewCheckupInput = inputTypeOf(newCheckupSchema);
export const CheckupChange = inputTypeOf(checkupChangeSchema);
