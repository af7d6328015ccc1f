import cluster from 'node:cluster';
import { type RateLimiterAbstract, RateLimiterCluster, RateLimiterMemory } from 'rate-limiter-flexible';
import type { LogSettings } from '../log/log.ts';

/** A worker's number and the number of all, like `1/4`; in its environment, not in the configuration. */
export const workerVariable = 'ANIMAL_STORE_WORKER';

/** What the parent tells its workers, at each change. */
export interface ClusterState {
  /** How many workers are up, like `3 of 4`; null when all are. */
  workersUp: string | null;
  /** Whether all of them have been up. */
  hasStarted: boolean;
  /** As they may have been changed since the start. */
  log: LogSettings;
}

/** A worker tells its parent the address on which it listens. */
export interface WorkerReady {
  ready: string;
}

/** One of several processes that serve, and what it shares with its parent. */
export class ClusterWorker {
  /** Undefined until this worker is ready. */
  state: ClusterState | undefined;

  private constructor(
    /** From 1. */
    readonly number: number,
  ) {
    // Sending a message fails when the parent has gone; `onLost` handles that.
    process.on('error', () => undefined);
  }

  /** @returns undefined in a process that was not started by a parent of this service */
  static ofThisProcess(): ClusterWorker | undefined {
    const number = cluster.isWorker && process.env[workerVariable];
    return number ? new ClusterWorker(Number(number)) : undefined;
  }

  /** @param take called when this worker is ready, and at each change */
  onState(take: (state: ClusterState) => void): void {
    process.on('message', (message: Partial<ClusterState>) => {
      if (message.log === undefined) return;
      this.state = message as ClusterState;
      take(this.state);
    });
  }

  /** @param drain called when the parent has died: no connection arrives any more */
  onLost(drain: () => void): void {
    const { worker } = cluster;
    worker?.once('disconnect', () => {
      // Else Node would end the process at once, with requests in flight (lib/internal/cluster/child.js).
      worker.exitedAfterDisconnect = true;
      drain();
    });
  }

  ready(address: string): void {
    process.send?.({ ready: address } satisfies WorkerReady);
  }

  readonly limiter = limiterInParent;
}

export interface Budget {
  points: number;
  /** Seconds. */
  duration: number;
  /** Distinguishes the limiters that count in one place. */
  keyPrefix: string;
}

type Limiter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward' | 'delete'>;

/** Until a parent that does not answer counts as absent (ms), like a silent Redis. */
const timeoutMs = 500;

/** Counts in the parent, for all workers; while it does not answer, each worker counts for itself. */
function limiterInParent(budget: Budget): Limiter {
  const shared = new RateLimiterCluster({ ...budget, timeoutMs });
  const own = new RateLimiterMemory(budget);
  const either = <T>(ask: (limiter: Limiter) => Promise<T>): Promise<T> =>
    process.connected ? ask(shared).catch(() => ask(own)) : ask(own);
  return {
    get: (key) => either((limiter) => limiter.get(key)),
    penalty: (key, points) => either((limiter) => limiter.penalty(key, points)),
    reward: (key, points) => either((limiter) => limiter.reward(key, points)),
    delete: (key) => either((limiter) => limiter.delete(key)),
  };
}
