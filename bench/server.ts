import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpRequest } from './adapters.ts';
import { onCore } from './cores.ts';
import type { Program } from './programs.ts';
import type { System } from './systems.ts';

/** A running program that is ready for requests. */
export interface Server {
  pid: number;
  port: number;
  base: string;
  /** Time (ms) from the start of the process to its first response. */
  startTime: number;
  stop(): Promise<void>;
}

/**
 * Starts a program on the server's core and waits until it has answered the hot
 * page.
 */
export async function start(
  program: Program,
  probe: System,
  databaseUrl: string,
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'animal-store-bench-'));
  const errorFile = join(folder, 'stderr');
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const [command, args] = onCore('server', process.execPath, [program.script]);
  const stderr = openSync(errorFile, 'w');
  const began = performance.now();
  const child = spawn(command, args, {
    cwd: program.cwd,
    // Inherits only PATH, so that a variable of the environment cannot change
    // the measurement.
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: `${port}`,
      ...program.env(databaseUrl),
    },
    stdio: ['ignore', 'ignore', stderr],
  });
  closeSync(stderr);
  const stop = () => stopProcess(child, folder);
  try {
    await waitUntilReady(child, base, probe);
  } catch (error) {
    const errors = readFileSync(errorFile, 'utf8').trim();
    await stop();
    throw new Error(`${program.name} ${(error as Error).message}\n${errors}`);
  }
  return {
    pid: child.pid as number,
    port,
    base,
    startTime: performance.now() - began,
    stop,
  };
}

/**
 * Sends one request. @returns the parsed body. @throws Error if the status is
 * not 2xx
 */
export async function send(
  base: string,
  { method, path, headers, body }: HttpRequest,
): Promise<unknown> {
  const response = await fetch(base + path, {
    method,
    headers,
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  if (!response.ok)
    throw new Error(
      `${method} ${path} was answered with ${response.status}: ${text.slice(0, 500)}`,
    );
  return JSON.parse(text);
}

async function waitUntilReady(
  child: ChildProcess,
  base: string,
  { adapter }: System,
): Promise<void> {
  const deadline = Date.now() + 300_000;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error('exited before its first response.');
    try {
      await adapter.prepare?.(base);
      await send(base, adapter.request({ kind: 'list', limit: 20 }));
      return;
    } catch (error) {
      if (Date.now() > deadline)
        throw new Error(
          `was not ready within five minutes: ${(error as Error).message}`,
        );
      await sleep(5);
    }
  }
}

async function stopProcess(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const killTimer = setTimeout(() => child.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(killTimer);
  }
  rmSync(folder, { recursive: true, force: true });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
