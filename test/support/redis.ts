import { spawnSync } from 'node:child_process';
import { freePort } from './process.ts';
import { isOpen, type Program, startProgram, untilUp } from './servers/program.ts';

/** Whether there is a `redis-server` to run (Debian: redis-server). */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export type TestRedis = Awaited<ReturnType<typeof createRedis>>;

/** A private Redis on this machine, which can be killed and started again, and made to fall silent for a while. */
export async function createRedis() {
  const port = await freePort();
  const command = `redis-server --port ${port} --bind 127.0.0.1 --appendonly no --save`.split(' ');
  let program: Program | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    start: async () => {
      program = startProgram([...command, ''], '.', '/dev/null');
      await untilUp(program, '/dev/null', () => isOpen(port));
    },
    /** Until `resume` it answers nothing, and its connections stay open. */
    pause: () => program?.child.kill('SIGSTOP'),
    resume: () => program?.child.kill('SIGCONT'),
    kill: async () => program?.stop('SIGKILL'),
  };
}
