import { text } from 'node:stream/consumers';
import { Connection, type Outcome } from './connection.ts';
import type { Job, LoadResult } from './load.ts';
import { cpuMicros, cpuMicrosOf, machineMicros } from './measure.ts';

/**
 * The load process: reads a job from standard input, and writes its result to
 * standard output.
 */

const job: Job = JSON.parse(await text(process.stdin));
const requests = job.requests.map((request) => Buffer.from(request));
const connections = Array.from(
  { length: job.connections },
  () => new Connection(job.port),
);
for (const connection of connections) await connection.open();

const errors: LoadResult['errors'] = {};
const latencies: number[] = [];
let measuring = false;
let stopped = false;
let whenCounted = () => {};
const counted = new Promise<void>((resolve) => {
  whenCounted = resolve;
});

// Each connection starts at a different request, so that few concurrent
// requests are the same.
async function repeat(connection: Connection, index: number): Promise<void> {
  let next = Math.floor((index * requests.length) / connections.length);
  while (!stopped) {
    const sent = performance.now();
    const outcome = await connection.request(requests[next] as Buffer);
    if (measuring) record(outcome, performance.now() - sent);
    next = next + 1 === requests.length ? 0 : next + 1;
  }
}

function record(outcome: Outcome, latency: number): void {
  if (latencies.length + 1 === job.count) whenCounted();
  if (outcome === 'ok') latencies.push(latency);
  else errors[outcome] = (errors[outcome] ?? 0) + 1;
}

const load = Promise.all(connections.map(repeat));
await sleep(job.warmUp);

const start = sampleCpu();
measuring = true;
await Promise.race([sleep(job.seconds * 1000), counted]);
measuring = false;
const end = sampleCpu();

stopped = true;
await Promise.race([load, sleep(10_000)]);
const hung = connections.filter((connection) => connection.isWaiting).length;
if (hung > 0) errors.hung = hung;
for (const connection of connections) connection.close();

latencies.sort((a, b) => a - b);
const micros = (end.time - start.time) * 1000;
const server = end.server - start.server;
const own = end.load - start.load;
const postgres = end.postgres - start.postgres;
const machine = end.machine - start.machine;
const result: LoadResult = {
  requests: latencies.length,
  perSecond: latencies.length / (micros / 1_000_000),
  p50: quantile(0.5),
  p99: quantile(0.99),
  serverMicros: server / Math.max(latencies.length, 1),
  serverBusy: server / micros,
  loadBusy: own / micros,
  postgresBusy: postgres / micros,
  othersBusy: Math.max(0, machine - server - own - postgres) / micros,
  errors,
};
process.stdout.write(JSON.stringify(result), () => process.exit());

/** The CPU time (microseconds) that each process has used so far. */
function sampleCpu() {
  const { user, system } = process.cpuUsage();
  return {
    time: performance.now(),
    server: cpuMicros(job.pid),
    load: user + system,
    postgres: cpuMicrosOf('postgres'),
    machine: machineMicros(),
  };
}

function quantile(fraction: number): number {
  return (
    latencies[
      Math.min(latencies.length - 1, Math.floor(latencies.length * fraction))
    ] ?? 0
  );
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
