import type { Outcome } from './drill.ts';

const columns = [
  'drill',
  'rounds',
  'requests',
  'acknowledged',
  'lost',
  'doubled',
  'stale',
  'hung',
  '5xx but 503',
  'other errors',
  'recovery',
  'note',
];
const texts = ['drill', 'recovery', 'note'];

export const head = [
  row(columns),
  row(columns.map((column) => (texts.includes(column) ? '---' : '---:'))),
].join('\n');

export const rowOfMissing = (name: string, requirement: string) =>
  row([
    name,
    ...Array(columns.length - 2).fill('-'),
    `not run: ${requirement}`,
  ]);

export const rowOfFailure = (name: string, error: Error) =>
  row([
    name,
    ...Array(columns.length - 2).fill('-'),
    `FAILED: ${error.message.slice(0, 300)}`,
  ]);

export function rowOf(
  name: string,
  {
    tally,
    verdict,
    allowed,
    recovery = '-',
    note,
    faults = [],
    slow = [],
    rounds = 1,
  }: Outcome,
): string {
  const { failures } = tally;
  const expected = [...failures]
    .filter(([kind]) => allowed.includes(kind))
    .map(([kind, count]) => `${count} ${kind}`);
  const notes = [
    note,
    ...expected,
    ...faults.map((fault) => `FAILED: ${fault}`),
    ...slow.map((fault) => `SLOW: ${fault}`),
  ].filter((one) => one);
  const { lost, doubled } = verdict;
  const counts = [
    rounds,
    tally.requests,
    tally.acknowledged.size,
    lost,
    doubled,
    tally.stale.length,
    tally.hung,
  ];
  const wrong = [...failures].filter(([kind]) => !allowed.includes(kind));
  const [serverErrors, others] = [
    wrong.filter(isServerError),
    wrong.filter((one) => !isServerError(one)),
  ].map(sum);
  return row([
    name,
    ...counts,
    serverErrors,
    others,
    recovery,
    notes.join('; '),
  ]);
}

/** Describes the violations of a drill; empty when it has passed. */
export function failuresOf({
  tally,
  verdict,
  allowed,
  faults = [],
}: Outcome): string[] {
  const violations: Array<[what: string, count: number]> = [
    ['lost', verdict.lost],
    ['doubled', verdict.doubled],
    ['stored although refused with Retry-After', verdict.refusedYetWritten],
    [`stale, the first: ${tally.stale[0]}`, tally.stale.length],
    ['hung', tally.hung],
    ...[...tally.failures].filter(([kind]) => !allowed.includes(kind)),
  ];
  // A drill without creations proves nothing.
  const idle =
    tally.acknowledged.size === 0 ? ['no creation was acknowledged'] : [];
  return [
    ...violations
      .filter(([, count]) => count > 0)
      .map(([what, count]) => `${count} ${what}`),
    ...idle,
    ...faults,
  ];
}

const isServerError = ([kind]: [string, number]) => /^5(?!03)/.test(kind);
const sum = (failures: Array<[string, number]>) =>
  failures.reduce((total, [, count]) => total + count, 0);

function row(cells: unknown[]): string {
  return `| ${cells.map((cell) => `${cell}`.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`;
}
