import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpRequest } from './adapters.ts';
import { onCore } from './cores.ts';
import type { Program } from './programs.ts';
import type { System } from './systems.ts';

/** A system that runs and has answered. */
export interface Server {
  pid: number;
  port: number;
  base: string;
  /** Milliseconds from the start of the process to its first answer. */
  startTime: number;
  stop(): Promise<void>;
}

/** Starts a program on the core of the server and waits until it answers its hot page. */
export async function start(program: Program, probe: System, databaseUrl: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'animal-store-bench-'));
  const complaints = join(folder, 'stderr');
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const [command, args] = onCore('server', process.execPath, [program.script]);
  const stderr = openSync(complaints, 'w');
  const began = performance.now();
  const child = spawn(command, args, {
    cwd: program.cwd,
    // Nothing of our own environment but what finds programs: a stray variable must not change what is measured.
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
    await firstAnswer(child, base, probe);
  } catch (error) {
    const said = readFileSync(complaints, 'utf8').trim();
    await stop();
    throw new Error(`${program.name} ${(error as Error).message}\n${said}`);
  }
  return { pid: child.pid as number, port, base, startTime: performance.now() - began, stop };
}

/** Sends one request. @throws Error unless it is answered with 2xx. @returns the body, parsed. */
export async function send(base: string, { method, path, headers, body }: HttpRequest): Promise<unknown> {
  const response = await fetch(base + path, { method, headers, ...(body !== undefined && { body }) });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${answer.slice(0, 500)}`);
  return JSON.parse(answer);
}

async function firstAnswer(child: ChildProcess, base: string, { adapter }: System): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('ended before it answered.');
    try {
      await adapter.prepare?.(base);
      await send(base, adapter.request({ kind: 'list', limit: 20 }));
      return;
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`did not answer well within a minute: ${(error as Error).message}`);
      await sleep(5);
    }
  }
}

async function stopProcess(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const patience = setTimeout(() => child.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(patience);
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
