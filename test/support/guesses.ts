import { createSecret } from '../../src/access/keys/secret.ts';
import { type HttpResponse, send } from './http.ts';
import type { ServiceNode } from './store.ts';

type Node = Pick<ServiceNode, 'origin'>;
type Headers = Record<string, string>;

/** Asks for animals with this key, or with none. */
export function callWith({ origin }: Node, key: string | null, headers: Headers = {}): Promise<HttpResponse> {
  return send(origin, { path: '/v1/pets', headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers } });
}

/** One call after the other, each with a new key of the right shape that is nobody's. @returns their statuses */
export async function guess(node: Node, count: number, headers: (at: number) => Headers = () => ({})) {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) found.push((await callWith(node, createSecret(), headers(at))).status);
  return found;
}

/** The statuses of `count` tries of which no more than `limit` are judged. */
export function judged(limit: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => (at < limit ? 401 : 429));
}

/** Runs `work` with clocks that only `setTo` moves, in milliseconds from now. */
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
