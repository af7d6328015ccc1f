import { setTimeout as pause } from 'node:timers/promises';
import type { HttpRequest } from '../../../bench/adapters.ts';
import { encodeRequest, load as measure } from '../../../bench/load.ts';
import { serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { bulkPrefix, verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres } from './deployment.ts';
import { probe } from './probed.ts';

/** Enough requests that a small leak in each of them shows. */
const requestsPerRound = 50_000;

/**
 * Half a million distinct requests. They may grow the heap by 5% from the end
 * of the warm-up to the end of the last round.
 */
export const flatHeap: Drill = {
  name: 'flat heap',
  rounds: 10,
  missing: lacksPostgres,
  run: async (resources, _seconds, rounds) => {
    const probed = await probe(resources);
    const { service, database } = await deployOnPostgres(resources, {
      ...probed.env,
      LOG_LEVEL: 'warn',
    });
    const port = Number(new URL(service.origin).port);
    // Creates the pets that the requests find, and that `verify` looks for.
    const load = new Load({ writers: [service], readers: [service] });
    while (load.tally.acknowledged.size < 100) await pause(20);
    const tally = await load.stop();
    // A short drill sends fewer requests, also as warm-up.
    const isShort = rounds < 10;
    const heaps: number[] = [];
    let sent = 0;
    const errors = new Map<string, number>();
    const run = async (count: number) => {
      for (const until = sent + count; sent < until; ) {
        const job = {
          port,
          pid: service.pid,
          requests: requests(),
          connections: 32,
          warmUp: 0,
        };
        const result = await measure({ ...job, seconds: isShort ? 1 : 2 });
        sent += result.requests;
        for (const [kind, number = 0] of Object.entries(result.errors))
          errors.set(kind, (errors.get(kind) ?? 0) + number);
      }
      heaps.push(await probed.heap());
    };
    // The first run is the warm-up.
    for (let round = 0; round <= rounds; round += 1)
      await run(isShort ? requestsPerRound / 25 : requestsPerRound);
    tally.requests += sent;
    for (const [kind, count] of errors)
      for (let at = 0; at < count; at += 1) tally.fail(`load: ${kind}`);
    const [warmHeap = 0, ...later] = heaps;
    const growth = (later.at(-1) ?? 0) / warmHeap - 1;
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [],
      note: `heap after each round: ${heaps.map((bytes) => (bytes / 1e6).toFixed(1)).join(', ')} MB`,
      faults:
        growth > 0.05
          ? [`the heap has grown by ${Math.round(100 * growth)}%`]
          : [],
    };
  },
};

let next = 0;

/**
 * Each request has its own document, id or path, so that an unbounded cache
 * shows as growth.
 */
function requests(): string[] {
  const headers = {
    authorization: `Bearer ${serviceKey}`,
    'content-type': 'application/json',
  };
  return Array.from({ length: 8000 }, () => {
    next += 1;
    const query = `{ a${next}: pet(id: ${next}) { id name } }`;
    const variants: HttpRequest[] = [
      {
        method: 'GET',
        path: `/v1/pets?limit=${1 + (next % 20)}&after=${next}`,
        headers,
      },
      {
        method: 'GET',
        path: `/v1/pets/${1 + (next % 10)}?n=${next}`,
        headers: { ...headers, 'x-request-id': `heap-${next}` },
      },
      {
        method: 'POST',
        path: '/graphql',
        headers,
        body: JSON.stringify({ query, operationName: null }),
      },
      {
        method: 'POST',
        path: '/v1/pets',
        headers,
        body: JSON.stringify({
          name: `${bulkPrefix}${next}`,
          categoryId: next,
        }),
      },
    ];
    return encodeRequest(variants[next % 4] as HttpRequest);
  });
}
