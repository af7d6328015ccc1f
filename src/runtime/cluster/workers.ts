import cluster from 'node:cluster';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import type { LogControl } from '../log/log-control.ts';
import type { FromParent } from './messages.ts';
import { Place, type Report } from './place.ts';

export interface WorkersOptions {
  /** The file that each of them runs. */
  program: string;
  count: number;
  /** Its settings hold for the workers, too. */
  control: LogControl;
  /** Takes what the workers print, in whole lines. */
  output: { write(lines: string): void };
  /** Milliseconds that a drain may take; then those that are left are killed. */
  patience: number;
  /** Called once, when the service cannot go on: the caller drains. Without a reason where the worker has told its own. */
  onGiveUp(reason: string | undefined): void;
}

/**
 * The processes that are the service, of one parent, which has the port and passes connections to them in turn
 * (node:cluster): one that dies costs what it had in hand.
 */
export class Workers {
  /** The address of the service, when it can be reached there. Never, if it is given up before. */
  readonly listening: Promise<string>;
  readonly #places: Place[];
  readonly #patience: number;
  readonly #control: LogControl;
  #hasGivenUp = false;
  #isDraining = false;
  #hasStarted = false;

  private constructor({ program, count, control, output, patience, onGiveUp }: WorkersOptions) {
    const { log } = control;
    this.#patience = patience;
    this.#control = control;
    control.onChange = () => this.#tellAll();
    // Counts for all workers what counts by machine: wrong keys, and quotas without Redis.
    new RateLimiterClusterMaster();
    cluster.setupPrimary({ exec: program, args: [], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    let listens: (address: string) => void;
    this.listening = new Promise((done) => {
      listens = done;
    });
    this.#places = Array.from({ length: count }, (_, index) => {
      return new Place(index + 1, {
        count,
        log,
        output,
        hasOther: (place) => !this.#isDraining && this.#places.some((one) => one !== place && one.isUp),
        onReady: (address) => {
          listens(address);
          this.#tellAll();
        },
        onDown: () => this.#tellAll(),
        onGiveUp: (reason) => {
          if (this.#hasGivenUp) return;
          this.#hasGivenUp = true;
          onGiveUp(reason);
        },
      });
    });
  }

  /** Starts one, and the others when that one listens: a port that is taken is reported once. */
  static start(options: WorkersOptions): Workers {
    const workers = new Workers(options);
    const [first, ...others] = workers.#places as [Place, ...Place[]];
    first.start();
    void workers.listening.then(() => {
      if (!workers.#isDraining) for (const place of others) place.start();
    });
    return workers;
  }

  /** Ends all of them. @returns whether all that were serving have finished what they had in hand */
  async drain(): Promise<boolean> {
    this.#isDraining = true;
    const deadline = setTimeout(() => {
      for (const place of this.#places) place.kill();
    }, this.#patience);
    const ends = await Promise.all(this.#places.map((place) => place.stop()));
    clearTimeout(deadline);
    return !this.#hasGivenUp && ends.every(Boolean);
  }

  /** How many are up. */
  get up(): number {
    return this.#places.filter(({ isUp }) => isUp).length;
  }

  /** Asks all that are up to report, within this time (ms). */
  async ask(milliseconds: number): Promise<Report[]> {
    const reports = await Promise.all(this.#places.map((place) => place.ask(milliseconds)));
    return reports.filter((report) => report !== undefined);
  }

  left(): { workers: number } {
    return { workers: this.up };
  }

  #tellAll(): void {
    const { up } = this;
    const workersUp = up < this.#places.length ? `${up} of ${this.#places.length}` : null;
    this.#hasStarted ||= workersUp === null;
    const message: FromParent = { workersUp, hasStarted: this.#hasStarted, log: this.#control.settings };
    for (const place of this.#places) place.tell(message);
  }
}
