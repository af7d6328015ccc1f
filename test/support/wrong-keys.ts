import { createSecret } from '#engine/access/keys/secret.js';
import { type HttpResponse, send } from './http.ts';
import type { ServiceNode } from './store.ts';

type Node = Pick<ServiceNode, 'origin'>;
type Headers = Record<string, string>;

/** Lists animals with this key, or without a key. */
export function callWith(
  { origin }: Node,
  key: string | null,
  headers: Headers = {},
): Promise<HttpResponse> {
  return send(origin, {
    path: '/v1/pets',
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers },
  });
}

/**
 * Makes calls one after the other, each with a new well-formed key that was
 * never issued. @returns their statuses
 */
export async function guess(
  node: Node,
  count: number,
  headers: (at: number) => Headers = () => ({}),
) {
  const statuses: number[] = [];
  for (let at = 0; at < count; at += 1)
    statuses.push((await callWith(node, createSecret(), headers(at))).status);
  return statuses;
}

/**
 * The expected statuses of `count` tries when only the first `limit` keys are
 * checked.
 */
export function judged(limit: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => (at < limit ? 401 : 429));
}

/**
 * Runs `work` with stopped clocks; only `setTo` moves them, to so many
 * milliseconds from now.
 */
export async function withClock<Result>(
  work: (setTo: (milliseconds: number) => void) => Promise<Result>,
): Promise<Result> {
  const { now } = Date;
  const { now: monotonic } = performance;
  const [day, uptime] = [now(), performance.now()];
  const setTo = (milliseconds: number) => {
    Date.now = () => day + milliseconds;
    performance.now = () => uptime + milliseconds;
  };
  setTo(0);
  try {
    return await work(setTo);
  } finally {
    Date.now = now;
    performance.now = monotonic;
  }
}
