import { setTimeout as pause } from 'node:timers/promises';
import type { HttpRequest } from '../../bench/adapters.ts';
import { load as measure, onTheWire } from '../../bench/load.ts';
import { serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { bulk, verify } from '../verify.ts';
import { probe } from './probed.ts';
import { lacksPostgres, openShop } from './shop.ts';

/** How many requests are enough to see what each of them leaves. */
const perRound = 50_000;

/** Half a million requests, no two of them alike: what is kept after the first tenth is kept after the last. */
export const flatHeap: Drill = {
  name: 'flat heap',
  rounds: 10,
  missing: lacksPostgres,
  run: async (parts, _seconds, rounds) => {
    const probed = await probe(parts);
    const { service, database } = await openShop(parts, { ...probed.env, LOG_LEVEL: 'warn' });
    const port = Number(new URL(service.origin).port);
    // The animals that are found again and again, and looked for at the end.
    const load = new Load({ writers: [service], readers: [service] });
    while (load.tally.acknowledged.size < 100) await pause(20);
    const tally = await load.stop();
    // A short drill has a short warm-up, and few of the requests.
    const isShort = rounds < 10;
    const heaps: number[] = [];
    let sent = 0;
    const errors = new Map<string, number>();
    const run = async (count: number) => {
      for (const until = sent + count; sent < until; ) {
        const job = { port, pid: service.pid, requests: requests(), connections: 32, warmUp: 0 };
        const result = await measure({ ...job, seconds: isShort ? 1 : 2 });
        sent += result.requests;
        for (const [kind, number = 0] of Object.entries(result.errors))
          errors.set(kind, (errors.get(kind) ?? 0) + number);
      }
      heaps.push(await probed.heap());
    };
    // One more than the rounds: the first warms it up.
    for (let round = 0; round <= rounds; round += 1) await run(isShort ? perRound / 25 : perRound);
    tally.requests += sent;
    for (const [kind, count] of errors) for (let at = 0; at < count; at += 1) tally.fail(`load: ${kind}`);
    const [warm = 0, ...later] = heaps;
    const grown = (later.at(-1) ?? 0) / warm - 1;
    return {
      rounds,
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [],
      note: `heap after each part: ${heaps.map((bytes) => (bytes / 1e6).toFixed(1)).join(', ')} MB`,
      faults: grown > 0.05 ? [`the heap has grown by ${Math.round(100 * grown)}%`] : [],
    };
  },
};

let next = 0;

/** Each with another document, id or path, so that whatever remembers them shows. */
function requests(): string[] {
  const headers = { authorization: `Bearer ${serviceKey}`, 'content-type': 'application/json' };
  return Array.from({ length: 8000 }, () => {
    next += 1;
    const query = `{ a${next}: pet(id: ${next}) { id name } }`;
    const forms: HttpRequest[] = [
      { method: 'GET', path: `/v1/pets?limit=${1 + (next % 20)}&after=${next}`, headers },
      {
        method: 'GET',
        path: `/v1/pets/${1 + (next % 10)}?n=${next}`,
        headers: { ...headers, 'x-request-id': `heap-${next}` },
      },
      { method: 'POST', path: '/graphql', headers, body: JSON.stringify({ query, operationName: null }) },
      { method: 'POST', path: '/v1/pets', headers, body: JSON.stringify({ name: `${bulk}${next}`, categoryId: next }) },
    ];
    return onTheWire(forms[next % 4] as HttpRequest);
  });
}
