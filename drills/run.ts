import { killAll } from '../test/support/process.ts';
import { citusReference, citusShards } from './citus.ts';
import { type Drill, Missing, Parts } from './drill.ts';
import { failover } from './failover.ts';
import { plain } from './plain.ts';
import { pooler } from './pooler.ts';
import { replicas } from './replicas.ts';
import { failuresOf, head, rowOf, rowOfFailure, rowOfMissing } from './report.ts';
import { workers } from './workers.ts';

const programs: Record<string, Drill[]> = {
  grow: [plain, workers, pooler, replicas, failover, citusReference, citusShards],
};

/** `npm run drill -- grow [word]`: all drills of a program, or those with this word in their names, and one table. */
async function main([name = '', word = '']: string[]): Promise<boolean> {
  const program = programs[name];
  const seconds = Number(process.env.DRILL_SECONDS ?? 8);
  if (!program || !(seconds > 0)) throw new Error(`usage: npm run drill -- ${Object.keys(programs).join('|')} [word]`);
  const chosen = program.filter((drill) => drill.name.toLowerCase().includes(word.toLowerCase()));
  if (chosen.length === 0)
    throw new Error(`no drill is called so; there are:\n${program.map((one) => one.name).join('\n')}`);
  const results = [];
  for (const drill of chosen) results.push(await runDrill(drill, seconds));
  process.stdout.write(`${[head, ...results.map(({ row }) => row)].join('\n')}\n`);
  return results.every(({ isGood }) => isGood);
}

async function runDrill(drill: Drill, seconds: number): Promise<{ row: string; isGood: boolean }> {
  const say = (text: string) => process.stderr.write(`${drill.name}: ${text}\n`);
  const parts = new Parts();
  try {
    const missing = await drill.missing();
    if (missing) throw new Missing(missing);
    say('runs');
    const outcome = await drill.run(parts, seconds);
    const failures = failuresOf(outcome);
    say(failures.length === 0 ? 'as it must be' : `NOT as it must be: ${failures.join('; ')}`);
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
