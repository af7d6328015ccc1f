import { Field, InputType, Int, ObjectType, registerEnumType } from 'type-graphql';
import { Decimal, ID } from '../../../src/api/graphql/types.ts';
import type { Int64 } from '../../../src/validation/int64.ts';
import { CheckupState } from './checkup.schemas.ts';

registerEnumType(CheckupState, { name: 'CheckupState', description: 'Whether the checkup has taken place.' });

@ObjectType('Checkup', { description: 'A checkup of an animal.', simpleResolvers: true })
export class CheckupType {
  @Field(() => ID) readonly id!: Int64;
  @Field(() => ID) readonly petId!: Int64;
  @Field(() => String) readonly reason!: string;
  @Field(() => CheckupState) readonly state!: CheckupState;
  @Field(() => String, { nullable: true }) readonly note!: string | null;
  @Field(() => Decimal, { nullable: true }) readonly price!: string | null;
  @Field(() => Int) readonly version!: number;
}

@InputType('NewCheckup', { description: 'A checkup to be added.' })
export class NewCheckupInput {
  @Field(() => ID) readonly petId!: string;
  @Field(() => String) readonly reason!: string;
  @Field(() => CheckupState, { nullable: true }) readonly state?: CheckupState | null;
  @Field(() => String, { nullable: true }) readonly note?: string | null;
  @Field(() => Decimal, { nullable: true }) readonly price?: string | null;
}

@InputType('CheckupChange', { description: 'What to change of a checkup: null clears, absent members stay.' })
export class CheckupChange {
  @Field(() => String, { nullable: true }) readonly reason?: string | null;
  @Field(() => CheckupState, { nullable: true }) readonly state?: CheckupState | null;
  @Field(() => String, { nullable: true }) readonly note?: string | null;
  @Field(() => Decimal, { nullable: true }) readonly price?: string | null;
}
