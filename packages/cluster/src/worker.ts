import cluster from 'node:cluster';

/**
 * The environment variable with a worker's number. It also tells these workers
 * from those of a foreign parent, like PM2.
 */
export const workerVariable = 'CLUSTER_WORKER';

/** The parent sends this to its workers at each change. */
export interface ClusterState<Shared> {
  /** How many of the workers are up. */
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
    if (!number) return undefined;
    return new ClusterWorker(Number(number));
  }

  /** @param listener called when this worker is ready, and at each change */
  onState(listener: (state: ClusterState<Shared>) => void) {
    process.on('message', (message: Partial<ClusterState<Shared>>) => {
      if (message.hasStarted === undefined) return;
      this.state = message as ClusterState<Shared>;
      listener(this.state);
    });
  }

  /**
   * @param drain called when the parent has died and no more connections arrive
   */
  onLost(drain: () => void) {
    const { worker } = cluster;
    worker?.once('disconnect', () => {
      // Otherwise Node would exit immediately, with requests in flight
      // (lib/internal/cluster/child.js).
      worker.exitedAfterDisconnect = true;
      drain();
    });
  }

  /** Reports the address on which this worker listens. */
  ready(address: string) {
    process.send?.({ ready: address });
  }

  /**
   * @param answer answers `Workers.ask`; the parent gets the message of its
   *   error
   */
  onAsk(answer: () => Promise<object>) {
    process.on('message', async ({ ask }: { ask?: true }) => {
      if (!ask) return;
      const reply = await answer().catch(({ message }: Error) => message);
      if (process.connected) process.send?.({ reply });
    });
  }
}
