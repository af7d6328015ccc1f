import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { freePort } from '../../../support/process.ts';
import {
  isOpen,
  type Program,
  startProgram,
  untilUp,
} from '../../../support/servers/program.ts';

/** Whether `redis-server` is installed (Debian: redis-server). */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export type TestRedis = Awaited<ReturnType<typeof createRedis>>;

/**
 * A private Redis on 127.0.0.1 that a test can kill, start again, pause and
 * resume.
 *
 * @param options more of the command line
 */
export async function createRedis(...options: string[]) {
  const port = await freePort();
  const command =
    `redis-server --port ${port} --bind 127.0.0.1 --appendonly no --save`.split(
      ' ',
    );
  let program: Program | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    start: async () => {
      program = startProgram([...command, '', ...options], '.', '/dev/null');
      await untilUp(program, '/dev/null', () => isOpen(port));
    },
    /**
     * Suspends it until `resume`: it does not answer, and its connections stay
     * open.
     */
    pause: () => program?.child.kill('SIGSTOP'),
    resume: () => program?.child.kill('SIGCONT'),
    kill: async () => program?.stop('SIGKILL'),
    /** Sends it words (the inline form of its protocol). */
    command: async (...words: string[]) => {
      const socket = connect(port, '127.0.0.1').end(`${words.join(' ')}\r\n`);
      return text(socket);
    },
  };
}
