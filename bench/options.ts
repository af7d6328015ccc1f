import { parseArgs } from 'node:util';
import { type System, systems } from './systems.ts';
import { workloads } from './workloads.ts';

export interface Options {
  databaseUrl: string;
  systems: System[];
  workloads: string[];
  connections: number[];
  rounds: number;
  seconds: number;
  animals: number;
  /** How often a measurement that others disturbed is tried again. */
  retries: number;
}

export const usage = `npm run bench -- [--systems ours-rest,fastify-pg] [--workloads hot,mixed] [--connections 1,32]
                 [--rounds 3] [--seconds 2] [--animals 100000] [--retries 0] [--quick]

systems     ${systems.map(({ id }) => id).join(', ')}
workloads   ${Object.keys(workloads).join(', ')}
--retries   how often a measurement is tried again while other processes use over a fifth of a core
--quick     one round of one second at 1 and 32 connections, unless stated otherwise`;

/** A request that cannot be granted; its message is one line. */
export class Refusal extends Error {}

/** @throws Refusal */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options {
  const values = parse(args);
  const preset = values.quick
    ? { connections: '1,32', rounds: '1', seconds: '1' }
    : { connections: '1,32,256', rounds: '3', seconds: '2' };
  const ids = systems.map(({ id }) => id);
  const chosen = pick('--systems', values.systems, ids);
  return {
    databaseUrl: databaseUrl(env),
    systems: systems.filter(({ id }) => chosen.includes(id)),
    workloads: pick('--workloads', values.workloads, Object.keys(workloads)),
    connections: (values.connections ?? preset.connections).split(',').map((text) => whole('--connections', text)),
    rounds: whole('--rounds', values.rounds ?? preset.rounds),
    seconds: positive('--seconds', values.seconds ?? preset.seconds),
    animals: whole('--animals', values.animals ?? '100000'),
    retries: values.retries === undefined ? 0 : whole('--retries', values.retries),
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        systems: { type: 'string' },
        workloads: { type: 'string' },
        connections: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        animals: { type: 'string' },
        retries: { type: 'string' },
        quick: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new Refusal(`${(error as Error).message} See --help.`);
  }
}

/** @throws Refusal without BENCH_DATABASE_URL. */
export function databaseUrl({ BENCH_DATABASE_URL: url }: NodeJS.ProcessEnv): string {
  if (url && URL.canParse(url) && /^postgres(?:ql)?:$/.test(new URL(url).protocol)) return url;
  throw new Refusal(
    'BENCH_DATABASE_URL must be the postgres:// address of a PostgreSQL whose user may create databases.',
  );
}

function pick(name: string, text: string | undefined, known: string[]): string[] {
  const wanted = text?.split(',') ?? known;
  const unknown = wanted.filter((one) => !known.includes(one));
  if (unknown.length > 0) throw new Refusal(`${name}: ${unknown.join(', ')} is none of ${known.join(', ')}.`);
  return wanted;
}

function whole(name: string, text: string): number {
  if (!Number.isInteger(Number(text))) throw new Refusal(`${name} must be whole, not "${text}".`);
  return positive(name, text);
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Refusal(`${name} must be a number above zero, not "${text}".`);
  return value;
}
