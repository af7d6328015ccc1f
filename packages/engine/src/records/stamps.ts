import type { TProperties } from 'typebox';
import { actorIn, type Call } from '../call.ts';
import { initialValue } from '../validation/rules.ts';
import { moment, textSchema } from '../validation/schemas.ts';

/** Whether items say when they were created and changed, and by whom. */
export interface Stamped<
  Times extends boolean = boolean,
  Actor extends boolean = boolean,
> {
  /** Adds `createdAt` and `changedAt`, which no client sets. */
  readonly times?: Times | undefined;
  /** Adds `changedBy`: the actor, as in a trace. */
  readonly actor?: Actor | undefined;
}

export interface Times {
  readonly createdAt: Date;
  readonly changedAt: Date;
}

export interface Actor {
  readonly changedBy: string;
}

export type Stamp = keyof Times | keyof Actor;

/** The members that an item has by them. */
export type StampsOf<Stamping extends Stamped> = (Stamping['times'] extends true
  ? Times
  : unknown) &
  (Stamping['actor'] extends true ? Actor : unknown);

const examples = ['2026-11-29T12:00:00.000Z'];
const now = (description: string) => ({
  ...moment({ description, examples }),
  [initialValue]: 'now()',
});
const ofTimes = {
  createdAt: now('When it was created.'),
  changedAt: now('When it was created, or changed last.'),
};
const ofActor = {
  changedBy: textSchema({
    description: 'Who has created it, or changed it last.',
    examples: ['key:1'],
  }),
};

/** The schemas of these members. */
export function stampsOf({ times, actor }: Stamped): TProperties {
  return { ...(times && ofTimes), ...(actor && ofActor) };
}

/** What the service sets when it creates or changes an item. */
export function stamp({ actor }: Stamped, call: Call) {
  return actor && { changedBy: actorIn(call) };
}
