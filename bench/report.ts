import { mkdirSync, writeFileSync } from 'node:fs';
import type { Run } from './describe.ts';
import type { LoadResult } from './load.ts';
import { median } from './measure.ts';
import { type System, systems } from './systems.ts';
import { workloads } from './workloads.ts';

/** The result of one measurement. */
export interface Cell extends LoadResult {
  system: string;
  workload: string;
  connections: number;
  round: number;
  peakMiB: number;
}

/** The start of one process. */
export interface StartResult {
  system: string;
  round: number;
  /** From the start of the process to its first response (ms). */
  startTime: number;
  idleMiB: number;
}

const results = new URL('results/', import.meta.url);

/**
 * Prints the tables, and writes them to bench/results. @param alone the lines
 * before them of a run with `--alone`
 */
export function writeReport(
  run: Run,
  starts: StartResult[],
  cells: Cell[],
  alone?: string[],
): void {
  const tables = [
    ...(alone ?? []),
    ...startTable(run, starts),
    ...workloadTables(cells),
  ];
  const report = [...heading(run), ...tables, ''].join('\n');
  const name = alone ? 'alone' : 'latest';
  process.stdout.write(report);
  writeResult(`${name}.md`, report);
  writeResult(
    `${name}.json`,
    `${JSON.stringify({ run, lives: starts, cells }, null, 1)}\n`,
  );
}

export function writeResult(name: string, content: string): void {
  mkdirSync(results, { recursive: true });
  writeFileSync(new URL(name, results), content);
}

export function table(header: string[], rows: string[][]): string[] {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(header),
    line(header.map((_, column) => (column === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ];
}

function heading(run: Run): string[] {
  return [
    '# Last results',
    '',
    `${run.date}, ${run.cpu}, ${run.cores} cores, Node ${run.node}, PostgreSQL ${run.postgres}.`,
    `${run.animals} animals, ${run.rounds} rounds of ${run.seconds} s; medians of the rounds. Pinning: ${run.pinning}.`,
    ...(run.rounds < 3
      ? [
          '**A short run: it shows that everything works. Its figures are not reliable.**',
        ]
      : []),
    'Explanations: [README](../README.md).',
    '',
  ];
}

function startTable(run: Run, starts: StartResult[]): string[] {
  const rows = systemsIn(starts).map(({ id, title }) => {
    const own = starts.filter(({ system }) => system === id);
    const idle = median(own.map(({ idleMiB }) => idleMiB)).toFixed(0);
    return [
      title,
      run.versions[title] ?? '',
      median(own.map(({ startTime }) => startTime)).toFixed(0),
      idle,
    ];
  });
  return [
    '## Start',
    '',
    ...table(['system', 'versions', 'first response ms', 'idle RSS MiB'], rows),
    '',
  ];
}

function workloadTables(cells: Cell[]): string[] {
  const header = [
    'system',
    'connections',
    'req/s',
    'p50 ms',
    'p99 ms',
    'CPU us/req',
    'CPU to ours',
    'PG us/req',
    'peak RSS MiB',
    'errors',
    'others',
  ];
  return Object.entries(workloads).flatMap(([name, { title }]) => {
    const own = cells.filter(({ workload }) => workload === name);
    if (own.length === 0) return [];
    const counts = [...new Set(own.map(({ connections }) => connections))];
    const rows = counts.flatMap((count) => {
      const column = own.filter(({ connections }) => connections === count);
      return systemsIn(column).map((system) => row(system, count, column));
    });
    return [`## ${title}`, '', ...table(header, rows), ''];
  });
}

function row(
  { id, title, api }: System,
  count: number,
  column: Cell[],
): string[] {
  const own = column.filter(({ system }) => system === id);
  const middle = (value: (cell: Cell) => number) => median(own.map(value));
  const ratios = own.flatMap(({ round, serverMicros }) => {
    const ours = column.find(
      (cell) => cell.system === `ours-${api}` && cell.round === round,
    );
    return ours ? [serverMicros / ours.serverMicros] : [];
  });
  // If the load uses more than nine tenths of its core, it limits req/s. CPU
  // us/req is not affected.
  const limited = middle(({ loadBusy }) => loadBusy) > 0.9 ? ' *' : '';
  return [
    title,
    String(count),
    `${middle(({ perSecond }) => perSecond).toFixed(0)}${limited}`,
    middle(({ p50 }) => p50).toFixed(2),
    middle(({ p99 }) => p99).toFixed(2),
    middle(({ serverMicros }) => serverMicros).toFixed(0),
    ratios.length > 0 ? median(ratios).toFixed(2) : '-',
    middle(
      ({ postgresBusy, perSecond }) => (postgresBusy * 1e6) / perSecond,
    ).toFixed(0),
    Math.max(...own.map(({ peakMiB }) => peakMiB)).toFixed(0),
    String(
      own
        .flatMap(({ errors }) => Object.values(errors))
        .reduce((total, one) => total + one, 0),
    ),
    middle(({ othersBusy }) => othersBusy).toFixed(2),
  ];
}

function systemsIn(measured: Array<{ system: string }>): System[] {
  return systems.filter(({ id }) =>
    measured.some(({ system }) => system === id),
  );
}
