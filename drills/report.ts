import type { Outcome } from './drill.ts';

const columns = ['drill', 'requests', 'acknowledged', 'lost', 'doubled', 'stale', 'hung', 'errors', 'recovery', 'note'];

export const head = [row(columns), row(columns.map((_, at) => (at > 0 && at < 8 ? '---:' : '---')))].join('\n');

export const rowOfMissing = (name: string, what: string) => row([name, ...Array(8).fill('-'), `not run: ${what}`]);

export const rowOfFailure = (name: string, error: Error) =>
  row([name, ...Array(8).fill('-'), `FAILED: ${error.message.slice(0, 300)}`]);

export function rowOf(name: string, { tally, verdict, allowed, recovery = '-', note, faults = [] }: Outcome): string {
  const { failures } = tally;
  const expected = [...failures].filter(([kind]) => allowed.includes(kind)).map(([kind, count]) => `${count} ${kind}`);
  const notes = [note, ...expected, ...faults.map((fault) => `FAILED: ${fault}`)].filter((one) => one);
  const { lost, doubled } = verdict;
  const counts = [tally.requests, tally.acknowledged.size, lost, doubled, tally.stale.length, tally.hung];
  return row([name, ...counts, errors(tally.failures, allowed), recovery, notes.join('; ')]);
}

/** What must not be, in words; empty when the drill has passed. */
export function failuresOf({ tally, verdict, allowed, faults = [] }: Outcome): string[] {
  const musts: Array<[what: string, count: number]> = [
    ['lost', verdict.lost],
    ['doubled', verdict.doubled],
    ['refused with Retry-After, and there nevertheless', verdict.refusedYetWritten],
    [`stale, the first: ${tally.stale[0]}`, tally.stale.length],
    ['hung', tally.hung],
    ...[...tally.failures].filter(([kind]) => !allowed.includes(kind)),
  ];
  // A drill without work proves nothing.
  const idle = tally.acknowledged.size === 0 ? ['nothing was acknowledged'] : [];
  return [...musts.filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`), ...idle, ...faults];
}

const errors = (failures: Map<string, number>, allowed: string[]) =>
  [...failures].filter(([kind]) => !allowed.includes(kind)).reduce((sum, [, count]) => sum + count, 0);

function row(cells: unknown[]): string {
  return `| ${cells.map((cell) => `${cell}`.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`;
}
