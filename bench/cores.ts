import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const cores = { server: '0', load: '1' };

/** Whether the server and the load run on separate cores. */
export const isPinned = availableParallelism() >= 2 && hasTaskset();

/**
 * The command that starts a program on the core of its role, or on any core if
 * pinning is not possible.
 */
export function onCore(
  role: keyof typeof cores,
  file: string,
  args: string[],
): [string, string[]] {
  return isPinned
    ? ['taskset', ['-c', cores[role], file, ...args]]
    : [file, args];
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['-c', `${cores.server},${cores.load}`, 'true'], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}
