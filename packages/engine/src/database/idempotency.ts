import { hash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { isRawJSON, rawJSON } from '@animal-store/exact-json';
import type { DatabaseError } from 'pg';
import type { Call, Claim } from '../call.ts';
import { badInput, StoreError, Unavailable } from '../errors.ts';
import { SharedBudget } from '../shared-budget.ts';
import { maxWaiting } from './batches.ts';
import { causeOf, isOutcomeUnknown } from './postgres-errors.ts';
import type { RunStatement, Statement } from './postgres-server.ts';
import { withTimeout } from './with-timeout.ts';

// A transaction claims an idempotency key before its work (`answerOnce`), and a
// creation in the statement that inserts (`records/insertions.ts`). The answer
// to a request whose key
//
// - is new: that of its work
// - has done the same: the stored answer again
// - has done something else: 422, `reused`
// - is at work in this process until the request's deadline: 409, `inUse`; in
//   another one: 503, because PostgreSQL tells nothing but the time
// - was sent to a database that gave no answer: 503, `safeToRepeat`

const ofClaim = '(key_id, operation, hash) = ($1::int, $2, $3)';
const claimKey: Statement = {
  name: 'claim_key',
  text: `
    insert into idempotency_key (
      key_id, operation, hash, fingerprint, generated)
    values ($1::int, $2, $3, $4, '{}')
    on conflict do nothing
    returning 1`,
};
const storeAnswer: Statement = {
  name: 'store_answer',
  text: `
    update idempotency_key
    set generated = array[$4]
    where ${ofClaim}`,
};

/** What is stored of a claim: its fingerprint, and the texts of its answer. */
export const findClaim: Statement = {
  name: 'find_claim',
  text: `
    select encode(fingerprint, 'hex'), to_json(generated)::text
    from idempotency_key
    where ${ofClaim}`,
};

/** True when another process has stored a claim after a statement has begun. */
export function isTaken(error: unknown) {
  const { code, table } = error as Partial<DatabaseError>;
  return code === '23505' && /^idempotency_key/.test(`${table}`);
}

/** For `JSON.stringify`. */
const digitsOf = (_name: string, value: unknown) =>
  typeof value === 'bigint' ? `${value}` : value;

/** In bytes: that of SHA-256. */
const digestLength = 32;

/**
 * Hashes a validated input, which has one text, and appends the names of the
 * members that it may have.
 */
export function fingerprintOf(input: unknown, names = '') {
  const digest = hash('sha256', JSON.stringify(input, digitsOf), 'buffer');
  return Buffer.concat([digest, Buffer.from(names)]);
}

export function digestIn(fingerprint: Buffer) {
  return fingerprint.toString('hex', 0, digestLength);
}

/** The names in a fingerprint. */
export function namesIn(fingerprint: Buffer) {
  return `${fingerprint.subarray(digestLength)}`;
}

/** The parameters of a claim. */
export function claimColumns({ keyId, operation, hash }: Claim) {
  return [keyId, operation, hash];
}

export const nameOf = ({ keyId, operation, hash }: Claim) =>
  `${keyId} ${operation} ${hash.toString('hex')}`;

/** What this process has under way for idempotency keys. */
export class ClaimedWork {
  /** The last work of each key. */
  readonly #last = new Map<string, Promise<unknown>>();
  /** What waits for earlier work with its key. */
  readonly #waiting = new SharedBudget(maxWaiting);

  has(claim: Claim) {
    return this.#last.has(nameOf(claim));
  }

  /**
   * Waits until the earlier work with a key ends; then the database contains its
   * outcome.
   *
   * @throws StoreError IDEMPOTENCY_KEY_IN_USE at the deadline
   * @throws Unavailable when too much of this caller waits
   */
  async untilEnded(claim: Claim, { caller, deadline }: Call) {
    const earlier = this.#last.get(nameOf(claim));
    if (!earlier) return;
    const holder = caller?.id;
    if (!this.#waiting.take(holder)) throw Unavailable.busy();
    const left = deadline - performance.now();
    await withTimeout(left, earlier, inUse).finally(() =>
      this.#waiting.add(holder, -1),
    );
  }

  /** Notes work with a key, until it ends. */
  begin(claim: Claim, work: Promise<unknown>) {
    const name = nameOf(claim);
    const end = work
      .catch(() => undefined)
      .finally(() => {
        const isLast = this.#last.get(name) === end;
        if (isLast) this.#last.delete(name);
      });
    this.#last.set(name, end);
  }

  /** Runs work when no other work with its key is under way. */
  async inTurn<T>(claim: Claim, call: Call, run: () => Promise<T>) {
    while (this.has(claim)) await this.untilEnded(claim, call);
    const work = run();
    this.begin(claim, work);
    return work;
  }
}

/**
 * Does the work of a transaction once for a claim, and repeats its answer. It
 * waits for an open transaction with the same claim.
 *
 * @throws StoreError IDEMPOTENCY_KEY_REUSED, or BAD_USER_INPUT for an answer that
 *   is too long to be repeated
 */
export async function answerOnce<Answer>(
  rows: RunStatement,
  call: Call,
  claimed: Claim,
  input: object,
  work: () => Promise<Answer>,
) {
  const claim = claimColumns(claimed);
  const fingerprint = fingerprintOf(input);
  const isNew = (await rows(claimKey, [...claim, fingerprint])).length > 0;
  if (isNew) {
    call.replayed(false);
    const answer = await work();
    const stored = serialize(replaced(answer, withoutRaw));
    if (stored.length > longestAnswer) throw tooLong(stored);
    await rows(storeAnswer, [...claim, stored.toString('base64')]);
    return answer;
  }
  const [found = []] = await rows(findClaim, claim);
  const [known, texts] = found;
  if (known !== fingerprint.toString('hex')) throw reused();
  call.count(1);
  call.replayed(true);
  const [stored] = JSON.parse(`${texts}`);
  const answer = deserialize(Buffer.from(stored, 'base64'));
  return replaced(answer, withRaw) as Answer;
}

/** In bytes. An item of a page has a sixth of it at most. */
const longestAnswer = 2 ** 20;

function tooLong({ length }: Buffer) {
  const message = `Nothing is stored: with an Idempotency-Key an answer has at most ${longestAnswer} bytes, not ${length}.`;
  return badInput(message);
}

const rawName = 'JSON.rawJSON';

/** v8 cannot serialise raw JSON. */
const withoutRaw = (part: object) =>
  isRawJSON(part) ? new Map([[rawName, JSON.stringify(part)]]) : part;
const withRaw = (part: object) =>
  part instanceof Map && part.has(rawName) ? rawJSON(part.get(rawName)) : part;

/** Changes the parts of arrays and plain objects. */
function replaced(value: unknown, change: (part: object) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const within = (one: unknown) => replaced(one, change);
  if (Array.isArray(value)) return value.map(within);
  const isPlain = Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain) return change(value);
  const members = Object.entries(value);
  return Object.fromEntries(members.map(([name, one]) => [name, within(one)]));
}

/**
 * Allows a retry after an unknown outcome, because the idempotency key makes it
 * safe.
 */
export function safeToRepeat(error: unknown) {
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
