import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onCore } from '../../../bench/cores.ts';
import { load as measure } from '../../../bench/load.ts';
import { Client } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { refused } from '../tally.ts';
import { verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres } from './deployment.ts';
import { requests } from './overload.ts';

/** Requests whose number does not depend on how fast the service answers. */
export interface Rush {
  port: number;
  /** Encoded HTTP/1.1 messages. */
  requests: string[];
  /** All are opened at the start, as fast as possible. */
  connections: number;
  perSecond: number;
  seconds: number;
}

const worker = fileURLToPath(new URL('rush.worker.ts', import.meta.url));
const factor = 3;
const connections = 3000;
/**
 * Longest time (ms) to the answer on a new connection; on a disturbed machine
 * the second one.
 */
const limits = [1000, 10_000] as const;

/**
 * Three times the requests that the service can serve, on thousands of new
 * connections. Each probe opens another.
 */
export const rush: Drill = {
  name: `rush (${factor} times the requests, ${connections} new connections)`,
  missing: lacksPostgres,
  run: async (resources, seconds) => {
    const env = { LOG_LEVEL: 'warn', EVENT_LOOP_MAX_DELAY_MS: '100' };
    const { service, database } = await deployOnPostgres(resources, env);
    const port = Number(new URL(service.origin).port);
    const job = {
      port,
      pid: service.pid,
      requests: requests(),
      connections: 64,
      warmUp: 500,
      seconds: seconds / 2,
    };
    const best = await measure(job);
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 4,
    });
    const ended = start({
      port,
      requests: requests(),
      connections,
      perSecond: factor * best.perSecond,
      seconds,
    });
    const probes: Array<Promise<Probe>> = [];
    for (let isOver = false; !isOver; ) {
      for (const path of ['/livez', '/v1/pets?limit=1'])
        probes.push(probe(service.origin, path));
      isOver = await Promise.race([ended.then(() => true), pause(100, false)]);
    }
    const outcomes = await ended;
    const answers = await Promise.all(probes);
    const tally = await load.stop();
    tally.requests += answers.length + (outcomes.ok ?? 0);
    const slowest = Math.max(
      ...answers.map(({ milliseconds }) => milliseconds),
    );
    const lost = answers.filter(
      ({ status }) => status !== 200 && status !== 503,
    ).length;
    const [others, limit] =
      best.othersBusy > 0.4 ? ['busy', limits[1]] : ['quiet', limits[0]];
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused],
      note: `${Math.round(best.perSecond)}/s with 64 clients; in the rush ${JSON.stringify(outcomes)}; ${answers.length} new connections answered within ${Math.round(slowest)} ms on a ${others} machine`,
      faults:
        lost > 0 ? [`${lost} new connections had no answer of 200 or 503`] : [],
      slow:
        slowest > limit
          ? [`a new connection was answered after ${Math.round(slowest)} ms`]
          : [],
    };
  },
};

/**
 * Runs a rush in a separate process on the core of the load. @returns the
 * number of each outcome
 */
async function start(rush: Rush): Promise<Record<string, number>> {
  const [command, args] = onCore('load', process.execPath, [worker]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(rush));
  return JSON.parse(await text(child.stdout));
}

interface Probe {
  status: number;
  milliseconds: number;
}

/** Sends a request on a new connection. */
async function probe(origin: string, path: string): Promise<Probe> {
  const client = new Client(origin, { reconnects: true });
  const sentAt = performance.now();
  const reply = await client.get(path);
  client.close();
  return {
    status: reply.kind === 'answer' ? reply.status : 0,
    milliseconds: performance.now() - sentAt,
  };
}
