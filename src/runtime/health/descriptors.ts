import { readdirSync } from 'node:fs';

export interface Needs {
  /** Connections that the process may open, or serve for others than clients, later on. */
  connections: number;
  /** Files that it may open at a time. */
  files: number;
}

/** More connections than one process serves well; each takes some 20 kB. */
const most = 10_000;
/** With fewer the service would not be of use. */
const fewest = 16;

/**
 * How many connections of clients the operating system allows this process, such that it can still open what it needs:
 * the soft limit of open files (`ulimit -n`, which Node raises to the hard one), minus what is open, minus that.
 *
 * @returns 16 to 10000
 */
export function roomForConnections({ connections, files }: Needs, limit = openFilesLimit()): number {
  return Math.max(fewest, Math.min(most, limit - openFiles() - connections - files));
}

/** @returns the soft limit of open files, infinity for none */
export function openFilesLimit(): number {
  // Node's types do not know this option yet. Without it the report looks up the name of every peer.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } };
  report.excludeNetwork = excludeNetwork;
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY;
}

function openFiles(): number {
  try {
    return readdirSync('/dev/fd').length;
  } catch {
    return 64;
  }
}
