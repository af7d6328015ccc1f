import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { isPinned } from './cores.ts';
import type { BenchDatabase } from './database.ts';
import type { Options } from './options.ts';
import type { System } from './systems.ts';

/** Conditions of a run that its figures depend on. */
export interface Run {
  date: string;
  cpu: string;
  cores: number;
  node: string;
  postgres: string;
  pinning: string;
  rounds: number;
  seconds: number;
  animals: number;
  versions: Record<string, string>;
}

export async function describeRun(
  options: Options,
  database: BenchDatabase,
): Promise<Run> {
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    node: process.version,
    postgres: await database.version(),
    pinning: isPinned
      ? 'server on core 0, load on core 1, PostgreSQL on any'
      : 'none: this machine has one core or no taskset',
    rounds: options.rounds,
    seconds: options.seconds,
    animals: options.petCount,
    versions: Object.fromEntries(
      options.systems.map((system) => [system.title, versionsOf(system)]),
    ),
  };
}

function versionsOf({ packages, program }: System): string {
  const read = (path: string) =>
    JSON.parse(readFileSync(path, 'utf8')) as { version: string };
  if (packages.length === 0) return read(`${program.cwd}/package.json`).version;
  return packages
    .map(
      (name) =>
        `${name} ${read(`${program.cwd}/node_modules/${name}/package.json`).version}`,
    )
    .join(', ');
}
