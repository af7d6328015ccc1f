import type { FastifyInstance } from 'fastify';
import { StoreError } from '../errors.ts';

/** Pause (ms) while work is left, so that requests get their turn. */
const busyPause = 20;

/**
 * Repeats work in the background until the app closes. A failure is logged, and
 * the work is repeated. A database that is away is logged once, elsewhere.
 *
 * @param ms average pause; its jitter lets processes take turns
 * @param work returns true when more is left
 * @param message of a failure
 */
export function every(
  app: FastifyInstance,
  ms: number,
  work: () => Promise<unknown>,
  message: string,
) {
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const run = async () => {
    const isMore = await work().catch((err) => {
      const level = err instanceof StoreError ? 'debug' : 'warn';
      app.log[level]({ err }, message);
    });
    wait(isMore === true ? busyPause : ms);
  };
  const wait = (pause: number) => {
    const start = () => {
      running = run();
    };
    timer = setTimeout(start, pause * (0.5 + Math.random())).unref();
  };
  wait(ms);
  app.addHook('onClose', async () => {
    await running;
    clearTimeout(timer);
  });
}
