import { readFileSync } from 'node:fs';

/** The resident memory of a process, in bytes (proc(5)). */
export function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  )?.[1];
  return 1024 * Number(kibibytes);
}
