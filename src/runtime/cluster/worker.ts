import cluster from 'node:cluster';
import type { LogSettings } from '../log/log.ts';

/** Environment variable with a worker's number and the number of workers, like `1/4`. Not configurable. */
export const workerVariable = 'ANIMAL_STORE_WORKER';

/** The parent sends this to its workers at each change. */
export interface ClusterState {
  /** How many workers are up, like `3 of 4`; null when all are. */
  workersUp: string | null;
  /** Whether all workers have been up. */
  hasStarted: boolean;
  /** The current log settings. */
  log: LogSettings;
}

/** A worker reports the address on which it listens. */
export interface WorkerReady {
  ready: string;
}

/** A worker process, and its communication with the parent. */
export class ClusterWorker {
  /** Undefined until this worker is ready. */
  state: ClusterState | undefined;

  private constructor(
    /** From 1. */
    readonly number: number,
  ) {
    // Sending a message fails after the parent has died; `onLost` handles that.
    process.on('error', () => undefined);
  }

  /** @returns undefined in a process that is not a worker */
  static ofThisProcess(): ClusterWorker | undefined {
    const number = cluster.isWorker && process.env[workerVariable];
    return number ? new ClusterWorker(Number(number)) : undefined;
  }

  /** @param listener called when this worker is ready, and at each change */
  onState(listener: (state: ClusterState) => void): void {
    process.on('message', (message: Partial<ClusterState>) => {
      if (message.log === undefined) return;
      this.state = message as ClusterState;
      listener(this.state);
    });
  }

  /** @param drain called when the parent has died and no more connections arrive */
  onLost(drain: () => void): void {
    const { worker } = cluster;
    worker?.once('disconnect', () => {
      // Otherwise Node would exit immediately, with requests in flight (lib/internal/cluster/child.js).
      worker.exitedAfterDisconnect = true;
      drain();
    });
  }

  ready(address: string): void {
    process.send?.({ ready: address } satisfies WorkerReady);
  }
}
