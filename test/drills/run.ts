import { killAll } from '../support/process.ts';
import { alerts } from './alerts.ts';
import { citusReference, citusShards } from './citus.ts';
import { type Drill, Missing, Resources } from './drill.ts';
import { failover } from './failover.ts';
import { attacked } from './faults/attacked.ts';
import { clock } from './faults/clock.ts';
import { crowded } from './faults/crowded.ts';
import { databasePaused, databaseRestarted } from './faults/database.ts';
import { diskFull } from './faults/disk.ts';
import { flatHeap } from './faults/heap.ts';
import { killedEmbedded, killedOnPostgres } from './faults/killed.ts';
import { locked } from './faults/locked.ts';
import { overload } from './faults/overload.ts';
import { repeated } from './faults/repeated.ts';
import { rush } from './faults/rush.ts';
import { stopped } from './faults/stopped.ts';
import { vanishing } from './faults/vanishing.ts';
import { live } from './live.ts';
import { plain } from './plain.ts';
import { pooler } from './pooler.ts';
import { replicas } from './replicas.ts';
import {
  failuresOf,
  head,
  rowOf,
  rowOfFailure,
  rowOfMissing,
} from './report.ts';
import { workers } from './workers.ts';

const programs: Record<string, Drill[]> = {
  alerts: [alerts],
  faults: [
    killedOnPostgres,
    killedEmbedded,
    databaseRestarted,
    databasePaused,
    stopped,
    repeated,
    overload,
    rush,
    crowded,
    attacked,
    locked,
    vanishing,
    diskFull,
    clock,
    flatHeap,
  ],
  live: [live],
  grow: [
    plain,
    workers,
    pooler,
    replicas,
    failover,
    citusReference,
    citusShards,
  ],
};

/**
 * `npm run drill -- [program] [word]` runs all drills, those of a program, or
 * those whose names contain the word. It prints one table.
 */
async function main(args: string[]): Promise<boolean> {
  const [name = '', word = ''] = args;
  const program = programs[name];
  const pattern = (program ? word : name).toLowerCase();
  const settings = {
    seconds: positiveNumber('DRILL_SECONDS', 8),
    rounds: positiveNumber('DRILL_ROUNDS', Number.POSITIVE_INFINITY),
  };
  const drills = program ?? Object.values(programs).flat();
  const chosen = drills.filter((drill) =>
    drill.name.toLowerCase().includes(pattern),
  );
  if (chosen.length === 0) {
    const names = drills.map((one) => one.name).join('\n');
    throw new Error(
      `no drill matches; the programs are ${Object.keys(programs).join(', ')}, and the drills:\n${names}`,
    );
  }
  const results = [];
  for (const drill of chosen) {
    const first = await runDrill(drill, settings);
    const isRepeated = !first.isGood && isShort(settings);
    results.push(isRepeated ? await runDrill(drill, settings) : first);
  }
  process.stdout.write(
    `${[head, ...results.map(({ row }) => row)].join('\n')}\n`,
  );
  return results.every(({ isGood }) => isGood);
}

function positiveNumber(variable: string, defaultValue: number): number {
  const value = Number(process.env[variable] || defaultValue);
  if (!(value > 0)) throw new Error(`${variable} must be a positive number`);
  return value;
}

interface Settings {
  /** Duration of the load in drills without rounds. */
  seconds: number;
  /** Maximum number of injected faults. */
  rounds: number;
}

/**
 * A short drill shows that the drill works, beside other programs. It runs once
 * more when it fails, and its times are not judged.
 */
const isShort = ({ rounds }: Settings) => Number.isFinite(rounds);

async function runDrill(
  drill: Drill,
  settings: Settings,
): Promise<{ row: string; isGood: boolean }> {
  const { seconds, rounds } = settings;
  const log = (text: string) =>
    process.stderr.write(`${drill.name}: ${text}\n`);
  const resources = new Resources();
  try {
    const missing = await drill.missing();
    if (missing) throw new Missing(missing);
    const began = performance.now();
    log('started');
    const outcome = await drill.run(
      resources,
      seconds,
      Math.min(drill.rounds ?? 1, rounds),
    );
    const slow = isShort(settings) ? [] : (outcome.slow ?? []);
    const failures = [...failuresOf(outcome), ...slow];
    log(
      failures.length === 0
        ? `passed after ${Math.round((performance.now() - began) / 1000)} s`
        : `FAILED: ${failures.join('; ')}`,
    );
    return { row: rowOf(drill.name, outcome), isGood: failures.length === 0 };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    log(
      error instanceof Missing
        ? `not run: ${error.message}`
        : `FAILED: ${error.stack}`,
    );
    return error instanceof Missing
      ? { row: rowOfMissing(drill.name, error.message), isGood: true }
      : { row: rowOfFailure(drill.name, error), isGood: false };
  } finally {
    await resources.release();
    await killAll();
  }
}

main(process.argv.slice(2)).then(
  (isGood) => process.exit(isGood ? 0 : 1),
  (error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  },
);
