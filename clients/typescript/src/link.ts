import type { Answer } from './answer.ts';
import type { Sort } from './pet.ts';
import { unexpected } from './store-error.ts';

/**
 * Where the next page begins, by `Link: <...>; rel="next"` (RFC 8288). Only
 * `after` is taken from it: the request goes to the address that this client
 * was given, not to whatever a proxy or an attacker has made of it.
 *
 * @throws StoreError when it does not lead forward, which would never end
 */
export function nextAfter(
  { status, headers }: Answer,
  before: bigint | undefined,
  sort: Sort = 'id',
): bigint | undefined {
  const target = /<([^>]*)>\s*;\s*rel="?next"?/i.exec(
    headers.get('link') ?? '',
  )?.[1];
  if (target === undefined) return undefined;
  const digits = /[?&]after=(-?\d+)(?:&|$)/.exec(target)?.[1];
  const after = digits === undefined ? undefined : BigInt(digits);
  const isForward = (after: bigint, before: bigint) =>
    sort === 'id' ? after > before : after < before;
  if (after !== undefined && (before === undefined || isForward(after, before)))
    return after;
  throw unexpected('The link to the next page does not lead to one.', status);
}
