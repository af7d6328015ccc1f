import type { Tally } from './tally.ts';

/** What is there after a drill. */
export interface Verdict {
  /** Acknowledged, and not in the database, or in no page of the service. */
  lost: number;
  /** Names that are there more than once. */
  doubled: number;
  /** Refused with `Retry-After`, which says that nothing was done, and there nevertheless. */
  refusedYetWritten: number;
}

/** What a drill has seen. */
export interface Outcome {
  tally: Tally;
  verdict: Verdict;
  /** Kinds of failures that this drill cannot do without: a request on a connection whose server is killed, for one. */
  allowed: string[];
  /** From the break to the service as before, in words. */
  recovery?: string;
  note?: string;
  /** What must not be, beyond the columns of the table. */
  faults?: string[];
  /** How often it was broken. */
  rounds?: number;
}

export interface Drill {
  name: string;
  /** How often it breaks something, unless it is told to do so less often. */
  rounds?: number;
  /** What this machine or this build lacks. */
  missing(): Promise<string | undefined>;
  run(parts: Parts, seconds: number, rounds: number): Promise<Outcome>;
}

/** A part that is not there, or does not start here: no fault of the service. */
export class Missing extends Error {}

/** What a drill has started, and how it ends: the last first. */
export class Parts {
  readonly #ends: Array<() => unknown> = [];

  add<Part>(part: Part, end: (part: Part) => unknown): Part {
    this.#ends.push(() => end(part));
    return part;
  }

  async end(): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}
