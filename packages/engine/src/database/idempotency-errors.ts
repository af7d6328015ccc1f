import { StoreError, Unavailable } from '../errors.ts';
import { causeOf, isOutcomeUnknown } from './postgres-errors.ts';

/**
 * Allows a retry after an unknown outcome, because the idempotency key makes it
 * safe.
 */
export function safeToRepeat(error: unknown): unknown {
  if (!isOutcomeUnknown(error)) return error;
  const message =
    'The database did not say whether this was stored: it may have been. Send it again with the same Idempotency-Key.';
  return new Unavailable(message, causeOf(error));
}

/** The error for an idempotency key that was used for another input. */
export function reused() {
  const message =
    'This Idempotency-Key was used for another input; a new creation needs a new key.';
  return new StoreError('IDEMPOTENCY_KEY_REUSED', message);
}

/** The error while the first request with a key is in progress. */
export function inUse() {
  const message =
    'A request with this Idempotency-Key is still under way; send it again shortly.';
  return new StoreError('IDEMPOTENCY_KEY_IN_USE', message, {
    headers: { 'retry-after': '1' },
  });
}
