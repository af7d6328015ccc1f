import type { LogOutput } from '@animal-store/log/log-output';
import type { LimiterStore } from '../access/limits/limiter.ts';
import type { Collection } from '../api/resources/collection.ts';
import type { Config } from '../config/config.ts';
import type { CheckReadiness } from '../runtime/health.ts';
import type { Log } from '../runtime/log/log.ts';

/** This process, before it serves. */
export interface ServiceProcess {
  config: Config;
  log: Log;
  output: LogOutput;
  /** The file that it runs. */
  program: string;
  /** Drains, and ends the process. */
  stop(reason: string): void;
}

/** How a process serves that is one of several, or their parent. */
export interface Serving {
  /** Where limits are counted; in this process by default. */
  limiters?: LimiterStore;
  /**
   * True where a parent has prepared the database, and has the operations port.
   */
  hasParent?: boolean;
  /** Starts the processes that serve in place of this one. */
  startWorkers?(): Server;
  /**
   * Members of `/readyz`.
   *
   * @throws StoreError when it cannot serve
   */
  readiness?(): object;
  /** Is told that this process listens. */
  onListen?(address: string, check: CheckReadiness): void;
}

/** A part of the process that was opened. */
export interface Opened {
  close?(): PromiseLike<unknown>;
}

/** What answers requests: the app of this process, or other processes. */
export interface Server {
  address: string | Promise<string>;
  check: CheckReadiness;
  /** Undefined where other processes have opened the modules. */
  collections?: readonly Collection[];
  /**
   * @param delay how long (ms) new requests are still served
   * @returns whether all requests were finished
   */
  close(delay: number): Promise<boolean>;
  /** Describes the work still in progress, for the log. */
  left(): object;
}

/** How long (ms) a step of the shutdown may take after the last request. */
export const lastStep = 3000;
