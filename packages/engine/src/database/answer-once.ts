import { hash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { isRawJSON, rawJSON } from '@animal-store/exact-json';
import type { Call, Claim } from '../call.ts';
import { reused } from './idempotency-errors.ts';
import type { RunStatement, Statement } from './postgres-server.ts';

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
const findAnswer: Statement = {
  name: 'find_answer',
  text: `
    select encode(fingerprint, 'hex'), generated[1]
    from idempotency_key
    where ${ofClaim}`,
};
const storeAnswer: Statement = {
  name: 'store_answer',
  text: `
    update idempotency_key
    set generated = array[$4]
    where ${ofClaim}`,
};

/** For `JSON.stringify`. */
const digitsOf = (_name: string, value: unknown) =>
  typeof value === 'bigint' ? `${value}` : value;

/**
 * Does the work of a transaction once for a claim, and repeats its answer. It
 * waits for an open transaction with the same claim.
 *
 * @param input validated, so that one input has one text
 * @throws StoreError IDEMPOTENCY_KEY_REUSED
 */
export async function answerOnce<Answer>(
  rows: RunStatement,
  call: Call,
  { keyId, operation, hash: key }: Claim,
  input: object,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const claim = [keyId, operation, key];
  const fingerprint = hash('sha256', JSON.stringify(input, digitsOf));
  const row = [...claim, Buffer.from(fingerprint, 'hex')];
  const isNew = (await rows(claimKey, row)).length > 0;
  if (isNew) {
    call.replayed(false);
    const answer = await work();
    const stored = serialize(replaced(answer, withoutRaw));
    await rows(storeAnswer, [...claim, stored.toString('base64')]);
    return answer;
  }
  const [found = []] = await rows(findAnswer, claim);
  const [known, stored] = found;
  if (known !== fingerprint) throw reused();
  call.replayed(true);
  const answer = deserialize(Buffer.from(`${stored}`, 'base64'));
  return replaced(answer, withRaw) as Answer;
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
