import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Figures that Linux provides about processes and their children. */

// /proc counts in USER_HZ, 100 a second on every Linux that Node runs on.
const microsPerTick = 10_000;

/**
 * CPU time (microseconds) of all threads of a process and its living children,
 * in user and kernel mode.
 */
export function cpuMicros(pid: number): number {
  return sum(processTree(pid), processMicros);
}

/**
 * CPU time (microseconds) of all processes with a name, such as PostgreSQL's.
 */
export function cpuMicrosOf(name: string): number {
  return sum(allProcesses(), (pid) =>
    read(`/proc/${pid}/comm`).trim() === name ? processMicros(pid) : 0,
  );
}

/**
 * CPU time (microseconds) that all processes have used, and that the host has
 * used for other machines.
 */
export function machineMicros(): number {
  // Interrupts are excluded: most of them are network traffic of the load, not
  // work of other processes.
  const [, user = 0, nice = 0, system = 0, , , , , steal = 0] = read(
    '/proc/stat',
  )
    .split(/\s+/, 9)
    .map(Number);
  return (user + nice + system + steal) * microsPerTick;
}

function processMicros(pid: number): number {
  const [, , , , , , , , , , , utime = '0', stime = '0'] = statOf(pid);
  return (Number(utime) + Number(stime)) * microsPerTick;
}

export function residentMiB(pid: number): number {
  return sum(processTree(pid), (one) => statusKiB(one, 'VmRSS')) / 1024;
}

/** The peak since the start, or since `resetPeak`. */
export function peakMiB(pid: number): number {
  return sum(processTree(pid), (one) => statusKiB(one, 'VmHWM')) / 1024;
}

/** Resets the peak if the kernel allows it (proc(5), `clear_refs`). */
export function resetPeak(pid: number): void {
  for (const one of processTree(pid)) {
    try {
      writeFileSync(`/proc/${one}/clear_refs`, '5');
    } catch {
      // Without permission the peak is that since the start of the process.
    }
  }
}

function processTree(root: number): number[] {
  const parents = new Map<number, number[]>();
  for (const pid of allProcesses()) {
    const parent = Number(statOf(pid)[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), pid]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(parents.get(pid) ?? []));
  return tree;
}

function allProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/**
 * The fields of /proc/<pid>/stat after the name, which may contain spaces and
 * parentheses: state, ppid, ...
 */
function statOf(pid: number): string[] {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function statusKiB(pid: number, field: string): number {
  return Number(
    new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(
      read(`/proc/${pid}/status`),
    )?.[1] ?? 0,
  );
}

// Returns an empty text if the process has ended.
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function sum(pids: number[], value: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + value(pid), 0);
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [below = 0, above = 0] = [
    sorted[sorted.length % 2 === 0 ? middle - 1 : middle],
    sorted[middle],
  ];
  return (below + above) / 2;
}
