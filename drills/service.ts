import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newFolder } from '../test/support/folder.ts';
import { cli, type Env, startServer } from '../test/support/process.ts';
import type { TestPostgres } from '../test/support/servers/postgres.ts';
import { atExit } from '../test/support/servers/program.ts';
import { serviceKey } from './client.ts';
import type { Parts } from './drill.ts';

/** The built service as a process. */
export interface Service {
  origin: string;
  pid: number;
  /** Its log lines so far. */
  lines(): Array<Record<string, unknown>>;
  /** Sends a signal and waits for the end. @returns the exit code; null after SIGKILL */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts it and waits until it is ready. @throws Error with what it has said when it is not within 30 seconds */
export async function startService(parts: Parts, env: Env): Promise<Service> {
  const folder = parts.add(await newFolder(), (path) => rmSync(path, { recursive: true, force: true }));
  const log = `${folder}/log`;
  const output = openSync(log, 'a');
  const starting = startServer({ BOOTSTRAP_API_KEY: serviceKey, ...env }, { stdout: output });
  const late = pause(30_000, undefined, { ref: false }).then(() => {
    throw new Error(`The service is not ready after 30 s: ${readFileSync(log, 'utf8').slice(-2000)}`);
  });
  const server = await Promise.race([starting, late]);
  closeSync(output);
  const forget = atExit(() => server.child.kill('SIGKILL'));
  parts.add(server, async () => {
    const impatience = setTimeout(() => server.child.kill('SIGKILL'), 15_000);
    await server.stop();
    clearTimeout(impatience);
    forget();
  });
  return {
    origin: server.origin,
    pid: server.child.pid ?? 0,
    lines: () => linesOf(log),
    stop: async (signal) => (await server.stop(signal)).code,
  };
}

function linesOf(log: string): Array<Record<string, unknown>> {
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines.filter((line) => line.startsWith('{') && line.endsWith('}')).map((line) => JSON.parse(line));
}

/** An empty database of its own. @returns its name */
export async function createShop(server: TestPostgres): Promise<'shop'> {
  await server.query('create database shop');
  return 'shop';
}

/** Runs an operator command. @throws Error with what it has said unless it ends well */
export async function command(args: string[], env: Env): Promise<string> {
  const { code, stdout, stderr } = await cli(args, env);
  if (code !== 0) throw new Error(`${args.join(' ')} has ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

/** What the build lacks of these variables, in words: what is drilled may be newer than the build. */
export async function lacking(...names: string[]): Promise<string | undefined> {
  const { variables } = await import(resolve('dist/src/config.js'));
  const unknown = names.filter((name) => !(name in variables));
  return unknown.length === 0 ? undefined : `this build has no ${unknown.join(', ')}`;
}
