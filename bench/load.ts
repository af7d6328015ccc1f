import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { HttpRequest } from './adapters.ts';
import type { Outcome } from './connection.ts';
import { onCore } from './cores.ts';

export interface Job {
  port: number;
  /**
   * The server process. Its CPU time is read before and after the measurement.
   */
  pid: number;
  /** Encoded HTTP/1.1 messages. */
  requests: string[];
  connections: number;
  /** Duration (ms) of the load before the measurement. */
  warmUp: number;
  /** Duration of the measurement. */
  seconds: number;
  /** Ends the measurement after so many requests, before its duration. */
  count?: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** CPU microseconds of the server per request. */
  serverMicros: number;
  /**
   * Average number of cores used by the server, the load, PostgreSQL on this
   * machine, and all other processes.
   */
  serverBusy: number;
  loadBusy: number;
  postgresBusy: number;
  othersBusy: number;
  errors: Partial<Record<Outcome, number>>;
}

const worker = fileURLToPath(new URL('load.worker.ts', import.meta.url));

/** Runs a job in a separate process on the core of the load. */
export async function load(job: Job): Promise<LoadResult> {
  const [command, args] = onCore('load', process.execPath, [worker]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(job));
  const [output, [code]] = await Promise.all([
    text(child.stdout),
    once(child, 'close'),
  ]);
  if (code !== 0)
    throw new Error(`The load exited with ${code ?? 'a signal'}.`);
  return JSON.parse(output);
}

/**
 * Cores used by other processes, above which a measurement counts as disturbed.
 */
const maxOthersBusy = 0.2;

/**
 * Runs a job until it was not disturbed, with at most `retries` repetitions.
 * @returns the least disturbed measurement
 */
export async function leastDisturbed(
  job: Job,
  retries: number,
): Promise<LoadResult> {
  const result = await load(job);
  if (result.othersBusy <= maxOthersBusy || retries === 0) return result;
  const next = await leastDisturbed(job, retries - 1);
  return next.othersBusy < result.othersBusy ? next : result;
}

/** Encodes a request as an HTTP/1.1 message. */
export function encodeRequest({
  method,
  path,
  headers,
  body,
}: HttpRequest): string {
  const all = {
    host: '127.0.0.1',
    accept: 'application/json',
    ...headers,
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
  };
  const lines = Object.entries(all).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
