import type { LogSettings } from '../log/log-control.ts';

/** What a worker tells its parent. */
export interface FromWorker {
  /** The address on which it listens. */
  ready: string;
}

/** An answer to the question with this number. */
export interface Answer {
  answerTo: number;
  answer: unknown;
}

/** What the parent tells a worker. */
export interface FromParent {
  /** How many workers are up, like `3 of 4`; null when all are. */
  workersUp: string | null;
  /** Whether all of them have been up. */
  hasStarted: boolean;
  /** As they have been changed since the start, perhaps. */
  log: LogSettings;
}

/** The parent asks a worker for what it has to report. */
export interface Question {
  question: number;
}

/** A worker's place and the number of all, like `1/4`; in its environment, not in the configuration. */
export const placeVariable = 'ANIMAL_STORE_WORKER';
