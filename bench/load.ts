import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { HttpRequest } from './adapters.ts';
import type { Outcome } from './connection.ts';
import { onCore } from './cores.ts';

export interface Job {
  port: number;
  /** The server, whose CPU time is read at both ends of the measured time. */
  pid: number;
  /** As they go over the wire. */
  requests: string[];
  connections: number;
  /** Milliseconds of load before the measured time. */
  warmUp: number;
  /** Measured time. */
  seconds: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** CPU microseconds of the server per request. */
  serverMicros: number;
  /** Cores in use, on average: by the server, the load, PostgreSQL on this machine, and by all others. */
  serverBusy: number;
  loadBusy: number;
  postgresBusy: number;
  othersBusy: number;
  errors: Partial<Record<Outcome, number>>;
}

const worker = fileURLToPath(new URL('load.worker.ts', import.meta.url));

/** Runs one job in a process of its own, on the core of the load. */
export async function load(job: Job): Promise<LoadResult> {
  const [command, args] = onCore('load', process.execPath, [worker]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(job));
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`The load ended with ${code ?? 'a signal'}.`);
  return JSON.parse(output);
}

const disturbed = 0.2;

/** Runs a job until others left the machine alone, `retries` times more at most; the calmest measurement counts. */
export async function calmest(job: Job, retries: number): Promise<LoadResult> {
  const result = await load(job);
  if (result.othersBusy <= disturbed || retries === 0) return result;
  const next = await calmest(job, retries - 1);
  return next.othersBusy < result.othersBusy ? next : result;
}

/** A request as it goes over the wire. */
export function onTheWire({ method, path, headers, body }: HttpRequest): string {
  const all = {
    host: '127.0.0.1',
    accept: 'application/json',
    ...headers,
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
