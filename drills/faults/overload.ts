import { setTimeout as pause } from 'node:timers/promises';
import { type LoadResult, load as measure, onTheWire } from '../../bench/load.ts';
import { Client, serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import type { Service } from '../service.ts';
import { refused } from '../tally.ts';
import { bulk, verify } from '../verify.ts';
import { memoryOf } from './memory.ts';
import { lacksPostgres, openShop } from './shop.ts';

/** Connections with which the service is at its best on two cores; and ten times as many. */
const enough = 32;

/**
 * How much the same load may add to the resident memory the second time, in bytes. V8's young generation grows to 48 MiB
 * (three semi-spaces of 16), and the buffers of 320 connections are 16 KiB each.
 */
const mostGrowth = 64 * 2 ** 20;

/** Ten times as many clients as the service has a use for, in a process of their own. */
export const overload: Drill = {
  name: 'overload (ten times the clients)',
  missing: lacksPostgres,
  run: async (parts, seconds) => {
    const { service, database } = await openShop(parts, { LOG_LEVEL: 'warn' });
    const job = { port: Number(new URL(service.origin).port), pid: service.pid, requests: requests(), warmUp: 500 };
    const run = (connections: number) => measure({ ...job, connections, seconds: seconds / 2 });
    const before = await run(enough);
    // Those whose animals are looked for afterwards, and a probe as a proxy has it.
    const load = new Load({ writers: [service], readers: [service], clients: 4 });
    const health = new Health(service);
    // So many clients need more memory than few, once.
    await run(10 * enough);
    const first = await run(10 * enough);
    const memory = memoryOf(service.pid);
    const second = await run(10 * enough);
    const resident = memoryOf(service.pid);
    const grown = resident - memory;
    const slowest = await health.stop();
    const tally = await load.stop();
    const [over] = [first, second].sort((one, other) => other.perSecond - one.perSecond) as [LoadResult, LoadResult];
    await pause(1000);
    const after = await run(enough);
    const percent = (one: LoadResult) => Math.round(100 * shareOf(one, before));
    for (const { errors } of [before, first, second, after]) {
      for (const [kind, count = 0] of Object.entries(errors)) {
        for (let at = 0; at < count; at += 1) tally.fail(kind === 'unavailable' ? refused : `overload: ${kind}`);
      }
    }
    tally.requests += before.requests + first.requests + second.requests + after.requests;
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused],
      recovery: `${percent(after)}% of the best a second later`,
      note: `${Math.round(before.perSecond)}/s with ${enough} clients, ${percent(over)}% of it with ${10 * enough}; /livez and /readyz within ${Math.round(slowest)} ms; resident memory ${Math.round(resident / 2 ** 20)} MiB, ${Math.round(grown / 2 ** 20)} of them since the first overload`,
      faults: [
        ...(percent(over) < 80 ? [`only ${percent(over)}% of the best under overload`] : []),
        ...(percent(after) < 80 ? [`only ${percent(after)}% of the best afterwards`] : []),
        ...(grown > mostGrowth ? ['memory grows under overload'] : []),
        ...(slowest > (first.othersBusy + second.othersBusy > 0.4 ? 10_000 : 2000)
          ? [`health took ${Math.round(slowest)} ms`]
          : []),
      ],
    };
  },
};

/**
 * The throughput as a share of another one. Where other programs had the processors meanwhile, it is what the service
 * does in the same time of a processor.
 */
function shareOf(one: LoadResult, best: LoadResult): number {
  const isDisturbed = Math.max(one.othersBusy, best.othersBusy) > 0.2;
  return isDisturbed ? best.serverMicros / one.serverMicros : one.perSecond / best.perSecond;
}

/** Three pages to one creation, each page another one. */
function requests(): string[] {
  const headers = { authorization: `Bearer ${serviceKey}`, 'content-type': 'application/json' };
  return Array.from({ length: 400 }, (_, at) => {
    const body = JSON.stringify({ name: `${bulk}${at}`, categoryId: at });
    if (at % 4 === 0) return onTheWire({ method: 'POST', path: '/v1/pets', headers, body });
    return onTheWire({ method: 'GET', path: `/v1/pets?limit=20&after=${at}`, headers });
  });
}

/** Asks for the health of a service all the time, on new connections. */
class Health {
  #slowest = 0;
  #isStopped = false;
  readonly #asking: Promise<void>;

  constructor({ origin }: Service) {
    this.#asking = this.#ask(new Client(origin, { isFresh: true }));
  }

  /** @returns the longest time (ms) until an answer that was 200 */
  async stop(): Promise<number> {
    this.#isStopped = true;
    await this.#asking;
    return this.#slowest;
  }

  async #ask(client: Client): Promise<void> {
    while (!this.#isStopped) {
      for (const path of ['/livez', '/readyz']) {
        const askedAt = performance.now();
        const reply = await client.get(path);
        const isGood = reply.kind === 'answer' && reply.status === 200;
        this.#slowest = Math.max(this.#slowest, isGood ? performance.now() - askedAt : Number.POSITIVE_INFINITY);
      }
      await pause(100);
    }
  }
}
