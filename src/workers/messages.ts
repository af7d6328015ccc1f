/** What a worker tells its parent. */
export interface FromWorker {
  /** The address on which it listens. */
  ready: string;
}

/** What the parent tells a worker. */
export interface FromParent {
  /** How many workers are up, like `3 of 4`; null when all are. */
  workersUp: string | null;
  /** Whether all of them have been up. */
  hasStarted: boolean;
}

/** A worker's place and the number of all, like `1/4`; in its environment, not in the configuration. */
export const placeVariable = 'ANIMAL_STORE_WORKER';
