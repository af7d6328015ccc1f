import { parseArgs } from 'node:util';
import { type System, systems } from './systems.ts';
import { UserError } from './user-error.ts';
import { workloads } from './workloads.ts';

export interface Options {
  databaseUrl: string;
  systems: System[];
  workloads: string[];
  connections: number[];
  rounds: number;
  seconds: number;
  petCount: number;
  /** Maximum number of repetitions of a disturbed measurement. */
  retries: number;
  /** Whether the report compares one request alone (`alone.ts`). */
  alone: boolean;
}

export const usage = `npm run bench -- [--systems ours-rest,fastify-pg] [--workloads hot,mixed] [--connections 1,32]
                 [--rounds 3] [--seconds 2] [--animals 100000] [--retries 0] [--quick] [--alone]

systems     ${systems.map(({ id }) => id).join(', ')}
workloads   ${Object.keys(workloads).join(', ')}
--retries   maximum number of repetitions while other processes use more than a fifth of a core
--alone     one connection beside the same duties by hand, the start and commands: a quarter of an hour
--quick     one round of one second at 1 and 32 connections; other options take precedence`;

interface Preset {
  systems?: string;
  workloads?: string;
  connections: string;
  rounds: string;
  seconds: string;
}

/**
 * `--alone`: what a request costs by itself, beside hand-written code with the
 * same duties (`alone.ts`). A quarter of an hour.
 */
const alone: Preset = {
  systems:
    'ours-rest,ours-graphql,fastify-pg-duties,mercurius-duties,static-rest,node-http',
  workloads: 'hot,mixed,one,create',
  connections: '1,32',
  rounds: '5',
  seconds: '1.5',
};

/** @throws UserError */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options {
  const values = parse(args);
  const quick = values.quick && {
    connections: '1,32',
    rounds: '1',
    seconds: '1',
  };
  const preset: Preset = {
    ...{ connections: '1,32,256', rounds: '3', seconds: '2' },
    ...(values.alone && alone),
    ...quick,
  };
  const ids = systems.map(({ id }) => id);
  const chosen = pick('--systems', values.systems ?? preset.systems, ids);
  return {
    databaseUrl: databaseUrl(env),
    systems: systems.filter(({ id }) => chosen.includes(id)),
    workloads: pick(
      '--workloads',
      values.workloads ?? preset.workloads,
      Object.keys(workloads),
    ),
    connections: (values.connections ?? preset.connections)
      .split(',')
      .map((text) => integer('--connections', text)),
    rounds: integer('--rounds', values.rounds ?? preset.rounds),
    seconds: positive('--seconds', values.seconds ?? preset.seconds),
    petCount: integer('--animals', values.animals ?? '100000'),
    retries:
      values.retries === undefined ? 0 : integer('--retries', values.retries),
    alone: values.alone,
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
        alone: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UserError(`${(error as Error).message} See --help.`);
  }
}

/** @throws UserError without BENCH_DATABASE_URL. */
export function databaseUrl({
  BENCH_DATABASE_URL: url,
}: NodeJS.ProcessEnv): string {
  if (
    url &&
    URL.canParse(url) &&
    /^postgres(?:ql)?:$/.test(new URL(url).protocol)
  )
    return url;
  throw new UserError(
    'BENCH_DATABASE_URL must be the postgres:// address of a PostgreSQL whose user may create databases.',
  );
}

function pick(
  name: string,
  text: string | undefined,
  known: string[],
): string[] {
  const selected = text?.split(',') ?? known;
  const unknown = selected.filter((one) => !known.includes(one));
  if (unknown.length > 0)
    throw new UserError(
      `${name}: ${unknown.join(', ')} is not one of ${known.join(', ')}.`,
    );
  return selected;
}

function integer(name: string, text: string): number {
  if (!Number.isInteger(Number(text)))
    throw new UserError(`${name} must be an integer, not "${text}".`);
  return positive(name, text);
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0))
    throw new UserError(`${name} must be a positive number, not "${text}".`);
  return value;
}
