import { styleText } from 'node:util';
import { Command } from 'commander';
import { exitCodes, type Output, withExamples } from '../terminal/program.ts';
import type { Finding, State } from './finding.ts';

/** `doctor`: print what was found, worst news not hidden among the good. */
export function doctorCommand(examine: () => Promise<Finding[]>, { print }: Output): Command {
  const command = new Command('doctor')
    .description(
      'look at configuration, database, ports, disk and clock: what is wrong, and what to do; change nothing',
    )
    .option('--json', 'print JSON, and nothing else')
    .action(async ({ json }: { json?: true }) => {
      const findings = await examine();
      const summary = summaryOf(findings);
      print(json ? JSON.stringify({ ...summary, findings }) : told(findings, summary));
      process.exitCode = summary.failures > 0 ? exitCodes.failed : exitCodes.done;
      // Whatever has not answered in its time may still keep a connection.
      setTimeout(() => process.exit(), 1000).unref();
    });
  return withExamples(
    command,
    'animal-store doctor',
    'animal-store doctor --json | jq \'.findings[] | select(.state != "ok")\'',
  );
}

interface Summary {
  failures: number;
  warnings: number;
}

function summaryOf(findings: Finding[]): Summary {
  const count = (wanted: State) => findings.filter(({ state }) => state === wanted).length;
  return { failures: count('failure'), warnings: count('warning') };
}

const colours = { ok: 'green', warning: 'yellow', failure: 'red', skipped: 'dim' } as const;

function told(findings: Finding[], { failures, warnings }: Summary): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(width + 11);
  const lines = findings.map(({ check, state, found, remedy }) => {
    const [first, ...rest] = found.split('\n');
    const more = [...rest.map((line) => line.trim()), ...(remedy ? [`-> ${remedy}`] : [])];
    const head = `${styleText(colours[state], state.padEnd(7))}  ${check.padEnd(width)}  ${first}`;
    return [head, ...more.map((line) => `${indent}${line}`)].join('\n');
  });
  const verdict = failures + warnings === 0 ? 'all is well' : `failures: ${failures}, warnings: ${warnings}`;
  return `${lines.join('\n')}\n${verdict}`;
}
