import cluster from 'node:cluster';
import type { LogSettings } from '../log/log-control.ts';
import { type Budget, CountedByParent } from './counted-by-parent.ts';
import { type Answer, type FromParent, type FromWorker, placeVariable, type Question } from './messages.ts';

/** A worker's side of what it shares with its parent. */
export class Parent {
  /** How many workers are up, like `3 of 4`; undefined when all are. */
  workersUp: string | undefined;
  /** Whether all workers have been up. */
  hasStarted = false;
  /** What this worker answers when its parent asks it to report. */
  onQuestion: (() => Promise<unknown>) | undefined;

  #onLog: ((settings: LogSettings) => void) | undefined;

  private constructor(
    /** The worker's, from 1. */
    readonly number: number,
    /** Of all workers. */
    readonly processes: number,
  ) {
    process.on('message', ({ workersUp, hasStarted, log, question }: Partial<FromParent & Question>) => {
      if (log) this.#onLog?.(log);
      if (workersUp !== undefined) this.workersUp = workersUp ?? undefined;
      if (hasStarted !== undefined) this.hasStarted = hasStarted;
      if (question !== undefined) void this.#answer(question);
    });
    // A message to a parent that has gone; `onLost` tells what there is to tell.
    process.on('error', () => undefined);
  }

  /** @returns undefined in a process that no parent of ours has started */
  static ofThisProcess(): Parent | undefined {
    const place = cluster.isWorker && process.env[placeVariable];
    if (!place) return undefined;
    const [number, processes] = place.split('/').map(Number) as [number, number];
    return new Parent(number, processes);
  }

  /** @param take how much is to be logged: told when this worker is ready, and at each change */
  onLog(take: (settings: LogSettings) => void): void {
    this.#onLog = take;
  }

  /** @param drain what to do when the parent has died: without it no connection arrives any more */
  onLost(drain: () => void): void {
    const { worker } = cluster;
    worker?.once('disconnect', () => {
      // Else Node would end the process at once, with requests in flight (lib/internal/cluster/child.js).
      worker.exitedAfterDisconnect = true;
      drain();
    });
  }

  /** Tells the parent that this worker listens. */
  ready(address: string): void {
    process.send?.({ ready: address } satisfies FromWorker);
  }

  async #answer(question: number): Promise<void> {
    // Whatever goes wrong here: the parent goes on without an answer.
    const answer = await this.onQuestion?.().catch(() => undefined);
    if (process.connected) process.send?.({ answerTo: question, answer } satisfies Answer);
  }

  readonly limiter = (budget: Budget) => new CountedByParent(budget);
}
