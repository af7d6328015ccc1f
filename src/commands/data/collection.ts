import type { EntityName } from '@mikro-orm/core';
import type { TObject } from 'typebox';

/** Items of one kind that an operator seeds, exports and imports. */
export interface Collection {
  /** As in its path: `pets`. */
  name: string;
  entity: EntityName;
  /** What a creation takes. */
  input: TObject;
  /** Makes a plausible input; none when it is to have no seed. @param pick gives a member, any as likely as the other */
  sample?: (pick: Pick) => object;
}

export type Pick = <Member>(members: readonly Member[]) => Member;
