import { Agent, request } from 'node:http';
import { createHistogram, performance } from 'node:perf_hooks';

export interface Load {
  /** `http:` and the place of the service. */
  url: URL;
  key: string;
  /** Milliseconds, after a second that is not counted. */
  duration: number;
  /** Each has one request under way at a time. */
  connections: number;
}

export interface Measured {
  what: string;
  /** Answers of 200 in the time. */
  answers: number;
  perSecond: number;
  /** Milliseconds until the last byte. */
  p50: number;
  p99: number;
  /** Other answers by their status, and `broken` for those that did not come. */
  others: Record<string, number>;
}

interface Kind {
  what: string;
  path: string;
  body?: string;
}

/** They read: whoever measures a store leaves nothing in it. */
export const kinds: Kind[] = [
  { what: 'REST: a list of 20', path: '/v1/pets?status=available&limit=20' },
  {
    what: 'GraphQL: the same list',
    path: '/graphql',
    body: JSON.stringify({ query: '{ pets(status: available, limit: 20) { id name categoryId status } }' }),
  },
];

const warmUp = 1000;
/** How long (ms) an answer may take. */
const patience = 10_000;
/** After what has failed, so that a service that is gone is not asked a million times. */
const pause = 50;

/** Asks one thing again and again. */
export async function measure(
  { url, key, duration, connections }: Load,
  { what, path, body }: Kind,
): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const times = createHistogram();
  const others: Record<string, number> = {};
  const begin = performance.now() + warmUp;
  const end = begin + duration;
  const client = async () => {
    while (performance.now() < end) {
      const sent = performance.now();
      const outcome = await ask();
      if (outcome === 'broken') await new Promise((done) => setTimeout(done, pause));
      if (sent < begin) continue;
      if (outcome === 200) times.record(Math.max(1, Math.round((performance.now() - sent) * 1000)));
      else others[outcome] = (others[outcome] ?? 0) + 1;
    }
  };
  const ask = () =>
    new Promise<number | 'broken'>((done) => {
      const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
      const asked = request(new URL(path, url), { agent, headers, method: body ? 'POST' : 'GET', timeout: patience });
      asked.once('response', (response) => {
        response.once('end', () => done(response.statusCode ?? 0)).once('error', () => done('broken'));
        response.resume();
      });
      asked.once('timeout', () => asked.destroy()).once('error', () => done('broken'));
      asked.end(body);
    });
  await Promise.all(Array.from({ length: connections }, client));
  agent.destroy();
  const seconds = (performance.now() - begin) / 1000;
  const milliseconds = (share: number) => times.percentile(share) / 1000;
  const answers = times.count;
  return {
    what,
    answers,
    perSecond: Math.round(answers / seconds),
    p50: answers > 0 ? milliseconds(50) : 0,
    p99: answers > 0 ? milliseconds(99) : 0,
    others,
  };
}
