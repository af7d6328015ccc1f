import { hash } from 'node:crypto';
import type { Call, Claim } from '../call.ts';

/**
 * Creates each input by `create`, or refuses it by itself.
 *
 * @param inputs those that are invalid as errors
 */
export async function createInTurn<Item, New>(
  service: { create(item: New, call: Call): Promise<Item> },
  inputs: ReadonlyArray<New | Error>,
  call: Call,
) {
  const claim = call.nextClaim();
  const outcomes: Array<Item | Error> = [];
  for (const [place, input] of inputs.entries()) {
    const isInvalid = input instanceof Error;
    call.claim = claim && claimAt(claim, place);
    const creation = isInvalid ? input : service.create(input, call);
    outcomes.push(await Promise.resolve(creation).catch((error) => error));
  }
  // Nothing is stored.
  if (outcomes.every((one) => one instanceof Error)) call.onRolledBack?.();
  return outcomes;
}

/**
 * Of an input's place, whatever the creations before it have claimed. Another
 * rule than that of `Call.nextClaim`: one for both would change hashes that are
 * stored.
 */
function claimAt(claim: Claim, place: number): Claim {
  const text = `${claim.hash.toString('hex')} ${place}`;
  return { ...claim, hash: hash('sha256', text, 'buffer') };
}
