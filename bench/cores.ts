import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const cores = { server: '0', load: '1' };

/** True where the server and the load can have a core each. */
export const isPinned = availableParallelism() >= 2 && hasTaskset();

/** The command that starts a program on the core of its role; unpinned where that is not possible. */
export function onCore(role: keyof typeof cores, file: string, args: string[]): [string, string[]] {
  return isPinned ? ['taskset', ['-c', cores[role], file, ...args]] : [file, args];
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['-c', `${cores.server},${cores.load}`, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
