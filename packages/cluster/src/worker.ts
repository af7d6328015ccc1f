import cluster from 'node:cluster';

/**
 * The environment variable with a worker's number. It also tells these workers from those of a foreign parent, like
 * PM2.
 */
export const workerVariable = 'CLUSTER_WORKER';

/** Milliseconds between two signs of life of a worker. */
const interval = 1000;

/** The parent sends this to its workers at each change. */
export interface ClusterState<Shared> {
  /** How many of the workers are up and do not hang. */
  up: number;
  count: number;
  /** Whether all workers have been up. */
  hasStarted: boolean;
  /** The value that the parent shares. */
  shared: Shared;
}

/** A worker process, and its communication with the parent. */
export class ClusterWorker<Shared> {
  /** Undefined until this worker is ready. */
  state: ClusterState<Shared> | undefined;

  private constructor(
    /** From 1. */
    readonly number: number,
  ) {
    // Sending a message fails after the parent has died; `onLost` handles that.
    process.on('error', () => undefined);
  }

  /** @returns undefined in a process that is not a worker */
  static ofThisProcess<Shared>(): ClusterWorker<Shared> | undefined {
    const number = cluster.isWorker && process.env[workerVariable];
    return number ? new ClusterWorker(Number(number)) : undefined;
  }

  /** @param listener called when this worker is ready, and at each change */
  onState(listener: (state: ClusterState<Shared>) => void): void {
    process.on('message', (message: Partial<ClusterState<Shared>>) => {
      if (message.hasStarted === undefined) return;
      this.state = message as ClusterState<Shared>;
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

  /** Reports the address on which this worker listens, and from then on that this worker is alive. */
  ready(address: string): void {
    process.send?.({ ready: address });
    setInterval(() => process.connected && process.send?.({}), interval).unref();
  }

  /** @param answer answers `Workers.ask`; its error's message is sent to the parent */
  onAsk(answer: () => Promise<object>): void {
    process.on('message', async ({ ask }: { ask?: true }) => {
      if (!ask) return;
      const reply = await answer().catch((error: Error) => ({ problem: error.message }));
      if (process.connected) process.send?.({ reply });
    });
  }
}
