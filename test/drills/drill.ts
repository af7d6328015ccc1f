import type { Tally } from './tally.ts';

/** Compares the stored pets with the responses of a drill. */
export interface Verdict {
  /**
   * Acknowledged creations that are missing from the database, or from a
   * service's pages.
   */
  lost: number;
  /** Names that are stored more than once. */
  doubled: number;
  /**
   * Creations that are stored although a 503 with `Retry-After` said that
   * nothing was done.
   */
  refusedYetWritten: number;
}

/** The result of a drill. */
export interface Outcome {
  tally: Tally;
  verdict: Verdict;
  /**
   * Kinds of failures that this drill causes by itself, such as broken
   * connections to a killed server.
   */
  allowed: string[];
  /**
   * Text for the table: the time from the fault until the service has
   * recovered.
   */
  recovery?: string;
  note?: string;
  /** Violations that the columns of the table do not count. */
  faults?: string[];
  /**
   * Times and rates beyond their limits. They depend on what else the machine
   * does, so only a drill in full length fails for them.
   */
  slow?: string[];
  /** Number of injected faults. */
  rounds?: number;
}

export interface Drill {
  name: string;
  /** Default number of injected faults; DRILL_ROUNDS may lower it. */
  rounds?: number;
  /** Names a requirement that this machine or this build lacks. */
  missing(): Promise<string | undefined>;
  run(resources: Resources, seconds: number, rounds: number): Promise<Outcome>;
}

/**
 * A requirement is not installed, or does not start here. The drill is skipped,
 * not failed.
 */
export class Missing extends Error {}

/** Everything that a drill has started. It is released in reverse order. */
export class Resources {
  readonly #releases: Array<() => unknown> = [];

  add<Resource>(
    resource: Resource,
    release: (resource: Resource) => unknown,
  ): Resource {
    this.#releases.push(() => release(resource));
    return resource;
  }

  async release(): Promise<void> {
    for (const release of this.#releases.reverse()) await release();
  }
}
