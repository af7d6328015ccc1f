import { setTimeout as pause } from 'node:timers/promises';
import {
  encodeRequest,
  type LoadResult,
  load as measure,
} from '../../../bench/load.ts';
import { Client, serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import type { Service } from '../service.ts';
import { refused } from '../tally.ts';
import { bulkPrefix, verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres } from './deployment.ts';
import { residentBytes } from './memory.ts';

/**
 * Number of connections with the highest throughput on two cores. The overload
 * has ten times as many.
 */
const bestConnections = 32;

/**
 * Maximum growth (bytes) of the resident memory during the second overload.
 * V8's young generation grows to 48 MiB (three semi-spaces of 16), and the
 * buffers of 320 connections are 16 KiB each.
 */
const maxGrowth = 64 * 2 ** 20;

/**
 * Ten times as many clients as the service needs for its highest throughput.
 * They run in a separate process.
 */
export const overload: Drill = {
  name: 'overload (ten times the clients)',
  missing: lacksPostgres,
  run: async (resources, seconds) => {
    const { service, database } = await deployOnPostgres(resources, {
      LOG_LEVEL: 'warn',
    });
    const job = {
      port: Number(new URL(service.origin).port),
      pid: service.pid,
      requests: requests(),
      warmUp: 500,
    };
    const run = (connections: number) =>
      measure({ ...job, connections, seconds: seconds / 2 });
    const before = await run(bestConnections);
    // `verify` looks for the pets of these clients. The probe checks the health
    // as a proxy does.
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 4,
    });
    const health = new HealthProbe(service);
    // The first overload allocates memory that is kept, so it is not measured.
    await run(10 * bestConnections);
    const first = await run(10 * bestConnections);
    const residentBefore = residentBytes(service.pid);
    const second = await run(10 * bestConnections);
    const residentAfter = residentBytes(service.pid);
    const growth = residentAfter - residentBefore;
    const slowest = await health.stop();
    const tally = await load.stop();
    const [over] = [first, second].sort(
      (one, other) => other.perSecond - one.perSecond,
    ) as [LoadResult, LoadResult];
    await pause(1000);
    const after = await run(bestConnections);
    const percent = (one: LoadResult) => Math.round(100 * shareOf(one, before));
    for (const { errors } of [before, first, second, after]) {
      for (const [kind, count = 0] of Object.entries(errors)) {
        for (let at = 0; at < count; at += 1)
          tally.fail(kind === 'unavailable' ? refused : `overload: ${kind}`);
      }
    }
    const isDisturbed = first.othersBusy + second.othersBusy > 0.4;
    tally.requests +=
      before.requests + first.requests + second.requests + after.requests;
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused],
      recovery: `${percent(after)}% of the best a second later`,
      note: `${Math.round(before.perSecond)}/s with ${bestConnections} clients, ${percent(over)}% of that with ${10 * bestConnections}; /livez and /readyz within ${Math.round(slowest)} ms; resident memory ${Math.round(residentAfter / 2 ** 20)} MiB, ${Math.round(growth / 2 ** 20)} of them from the last overload`,
      faults: growth > maxGrowth ? ['the memory grows under overload'] : [],
      slow: [
        ...(percent(over) < 80
          ? [`only ${percent(over)}% of the best under overload`]
          : []),
        ...(percent(after) < 80
          ? [`only ${percent(after)}% of the best afterwards`]
          : []),
        ...(slowest > (isDisturbed ? 10_000 : 2000)
          ? [`a health response took ${Math.round(slowest)} ms`]
          : []),
        ...(health.unready > 0 && !isDisturbed
          ? [`the service was not ready ${health.unready} times`]
          : []),
      ],
    };
  },
};

/**
 * The throughput relative to another measurement. If other programs disturbed
 * either one, the requests per CPU time are compared instead.
 */
function shareOf(one: LoadResult, best: LoadResult): number {
  const isDisturbed = Math.max(one.othersBusy, best.othersBusy) > 0.2;
  return isDisturbed
    ? best.serverMicros / one.serverMicros
    : one.perSecond / best.perSecond;
}

/** Three distinct pages to one creation. */
export function requests(): string[] {
  const headers = {
    authorization: `Bearer ${serviceKey}`,
    'content-type': 'application/json',
  };
  return Array.from({ length: 400 }, (_, at) => {
    const body = JSON.stringify({ name: `${bulkPrefix}${at}`, categoryId: at });
    if (at % 4 === 0)
      return encodeRequest({ method: 'POST', path: '/v1/pets', headers, body });
    return encodeRequest({
      method: 'GET',
      path: `/v1/pets?limit=20&after=${at}`,
      headers,
    });
  });
}

/** Polls the health of a service on new connections. */
export class HealthProbe {
  /**
   * How often `/readyz` was asked, and how often it said that the service is
   * not ready.
   */
  asked = 0;
  unready = 0;
  #slowest = 0;
  #isStopped = false;
  readonly #polling: Promise<void>;

  constructor({ origin }: Service) {
    this.#polling = this.#poll(new Client(origin, { reconnects: true }));
  }

  /**
   * @returns the longest time (ms) of a response; infinite if one was neither
   *   200 nor 503 of `/readyz`
   */
  async stop(): Promise<number> {
    this.#isStopped = true;
    await this.#polling;
    return this.#slowest;
  }

  async #poll(client: Client): Promise<void> {
    while (!this.#isStopped) {
      for (const path of ['/livez', '/readyz']) {
        const sentAt = performance.now();
        const reply = await client.get(path);
        const status = reply.kind === 'answer' ? reply.status : undefined;
        const isUnready = path === '/readyz' && status === 503;
        this.unready += Number(isUnready);
        const isAnswer = status === 200 || isUnready;
        this.#slowest = Math.max(
          this.#slowest,
          isAnswer ? performance.now() - sentAt : Number.POSITIVE_INFINITY,
        );
      }
      this.asked += 1;
      await pause(100);
    }
  }
}
