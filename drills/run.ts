import { killAll } from '../test/support/process.ts';
import { alerts } from './alerts.ts';
import { citusReference, citusShards } from './citus.ts';
import { type Drill, Missing, Parts } from './drill.ts';
import { failover } from './failover.ts';
import { clock } from './faults/clock.ts';
import { databasePaused, databaseRestarted } from './faults/database.ts';
import { diskFull } from './faults/disk.ts';
import { flatHeap } from './faults/heap.ts';
import { killedEmbedded, killedOnPostgres } from './faults/killed.ts';
import { locked } from './faults/locked.ts';
import { overload } from './faults/overload.ts';
import { repeated } from './faults/repeated.ts';
import { stopped } from './faults/stopped.ts';
import { vanishing } from './faults/vanishing.ts';
import { live } from './live.ts';
import { plain } from './plain.ts';
import { pooler } from './pooler.ts';
import { replicas } from './replicas.ts';
import { failuresOf, head, rowOf, rowOfFailure, rowOfMissing } from './report.ts';
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
    locked,
    vanishing,
    diskFull,
    clock,
    flatHeap,
  ],
  live: [live],
  grow: [plain, workers, pooler, replicas, failover, citusReference, citusShards],
};

/** `npm run drill -- [program] [word]`: all drills, those of a program, those with this word in their names; one table. */
async function main(given: string[]): Promise<boolean> {
  const [name = '', word = ''] = given;
  const program = programs[name];
  const wanted = (program ? word : name).toLowerCase();
  const settings = {
    seconds: positive('DRILL_SECONDS', 8),
    rounds: positive('DRILL_ROUNDS', Number.POSITIVE_INFINITY),
  };
  const drills = program ?? Object.values(programs).flat();
  const chosen = drills.filter((drill) => drill.name.toLowerCase().includes(wanted));
  if (chosen.length === 0) {
    const names = drills.map((one) => one.name).join('\n');
    throw new Error(`no drill is called so; there are ${Object.keys(programs).join(' and ')}, which are:\n${names}`);
  }
  const results = [];
  for (const drill of chosen) results.push(await runDrill(drill, settings));
  process.stdout.write(`${[head, ...results.map(({ row }) => row)].join('\n')}\n`);
  return results.every(({ isGood }) => isGood);
}

function positive(variable: string, otherwise: number): number {
  const value = Number(process.env[variable] || otherwise);
  if (!(value > 0)) throw new Error(`${variable} must be a positive number`);
  return value;
}

interface Settings {
  /** Under load, where a drill has no rounds. */
  seconds: number;
  /** At most. */
  rounds: number;
}

async function runDrill(drill: Drill, { seconds, rounds }: Settings): Promise<{ row: string; isGood: boolean }> {
  const say = (text: string) => process.stderr.write(`${drill.name}: ${text}\n`);
  const parts = new Parts();
  try {
    const missing = await drill.missing();
    if (missing) throw new Missing(missing);
    const began = performance.now();
    say('runs');
    const outcome = await drill.run(parts, seconds, Math.min(drill.rounds ?? 1, rounds));
    const failures = failuresOf(outcome);
    say(
      failures.length === 0
        ? `as it must be, after ${Math.round((performance.now() - began) / 1000)} s`
        : `NOT as it must be: ${failures.join('; ')}`,
    );
    return { row: rowOf(drill.name, outcome), isGood: failures.length === 0 };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    say(error instanceof Missing ? `not run: ${error.message}` : `FAILED: ${error.stack}`);
    return error instanceof Missing
      ? { row: rowOfMissing(drill.name, error.message), isGood: true }
      : { row: rowOfFailure(drill.name, error), isGood: false };
  } finally {
    await parts.end();
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
