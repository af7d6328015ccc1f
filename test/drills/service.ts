import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newFolder } from '../support/folder.ts';
import { cli, type Env, startServer } from '../support/process.ts';
import type { TestPostgres } from '../support/servers/postgres.ts';
import { atExit } from '../support/servers/program.ts';
import { serviceKey } from './client.ts';
import type { Resources } from './drill.ts';

/** A process of the built service. */
export interface Service {
  origin: string;
  pid: number;
  /** The log lines written so far. */
  lines(): Array<Record<string, unknown>>;
  /**
   * Sends a signal and waits until the process has ended. @returns the exit
   * code; null after SIGKILL
   */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/**
 * Starts a process and waits until it is ready. @throws Error with the end of
 * its log when it is not ready in 30 seconds
 */
export async function startService(
  resources: Resources,
  env: Env,
): Promise<Service> {
  const folder = resources.add(await newFolder(), (path) =>
    rmSync(path, { recursive: true, force: true }),
  );
  const log = `${folder}/log`;
  const output = openSync(log, 'a');
  const starting = startServer(
    { BOOTSTRAP_API_KEY: serviceKey, ...env },
    { stdout: output },
  );
  const timeout = pause(30_000, undefined, { ref: false }).then(() => {
    throw new Error(
      `The service is not ready after 30 s: ${readFileSync(log, 'utf8').slice(-2000)}`,
    );
  });
  const server = await Promise.race([starting, timeout]);
  closeSync(output);
  const unregister = atExit(() => server.child.kill('SIGKILL'));
  resources.add(server, async () => {
    const killTimer = setTimeout(() => server.child.kill('SIGKILL'), 15_000);
    await server.stop();
    clearTimeout(killTimer);
    unregister();
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
  return lines
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line));
}

/** Creates an empty database. @returns its name */
export async function createDatabase(server: TestPostgres): Promise<'shop'> {
  await server.query('create database shop');
  return 'shop';
}

/**
 * Runs an operator command. @returns its output. @throws Error with its output
 * unless it exits with 0
 */
export async function runCommand(args: string[], env: Env): Promise<string> {
  const { code, stdout, stderr } = await cli(args, env);
  if (code !== 0)
    throw new Error(
      `${args.join(' ')} exited with ${code}: ${stderr}${stdout}`,
    );
  return stdout;
}

/**
 * Describes which of these variables the build does not know; a drill may be
 * newer than the build.
 */
export async function missingVariables(
  ...names: string[]
): Promise<string | undefined> {
  const { allVariables } = await import(
    resolve('packages/engine/dist/config/config.js')
  );
  const { features } = await import(resolve('dist/src/features.js'));
  const known = allVariables(features);
  const unknown = names.filter((name) => !(name in known));
  return unknown.length === 0
    ? undefined
    : `this build has no ${unknown.join(', ')}`;
}
