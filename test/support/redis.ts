import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { eventually, freePort } from './process.ts';

/** Whether there is a `redis-server` to run (Debian: redis-server). */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

/** A private Redis on this machine, which can be killed and started again, and made to fall silent for a while. */
export interface TestRedis {
  url: string;
  start(): Promise<void>;
  /** Until `resume` it answers nothing, and its connections stay open. */
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
}

export async function createRedis(): Promise<TestRedis> {
  const port = await freePort();
  let child: ChildProcess | undefined;
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.end(() => resolve(true)));
      socket.once('error', () => resolve(false));
    });
  return {
    url: `redis://127.0.0.1:${port}`,
    start: async () => {
      child = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
        stdio: 'ignore',
      });
      await eventually(isOpen);
    },
    pause: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    kill: () =>
      new Promise((resolve) => {
        if (!child || child.exitCode !== null || child.signalCode !== null) return resolve();
        child.once('close', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}

/** The way to Redis, on which the commands that count are counted. */
export class RoadToRedis {
  url = '';
  commands = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(redisUrl: string) {
    this.#server = createServer((near) => {
      const far = connect(Number(new URL(redisUrl).port), '127.0.0.1');
      near.on('data', (bytes) => {
        this.commands += bytes.toString('latin1').match(/\beval(?:sha)?\b/gi)?.length ?? 0;
      });
      for (const socket of [near, far]) this.#sockets.add(socket.on('error', () => undefined));
      near.pipe(far).pipe(near);
    });
  }

  async open(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
