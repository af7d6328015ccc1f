import cluster, { type Worker } from 'node:cluster';
import type { Readable } from 'node:stream';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import type { Log } from '../log/log.ts';
import { handOver } from './hand-over.ts';
import { type ClusterState, type WorkerReady, workerVariable } from './worker.ts';

export interface WorkersOptions {
  /** The file that each of them runs. */
  program: string;
  count: number;
  /** Its settings hold for the workers, too. */
  log: Log;
  /** Takes what the workers print, in whole lines. */
  output: { write(lines: string): void };
  /** How long (ms) a drain may take before the remaining workers are killed. */
  drainTime: number;
  /** Called once, when no worker can be started: the caller drains. No reason when the worker has printed its own. */
  onGiveUp(reason: string | undefined): void;
}

/** The processes that serve, and what their parent does for them: start, restart, tell, end. */
export class Workers {
  readonly #listening = Promise.withResolvers<string>();
  /** The address of the service, once it can be reached there. Never resolves when it is given up before. */
  readonly listening = this.#listening.promise;
  readonly #slots: WorkerSlot[];
  #hasGivenUp = false;
  #isDraining = false;
  #hasStarted = false;

  /** Starts one, and the others when that one listens: a port that is taken is reported once. */
  constructor(readonly options: WorkersOptions) {
    const { program, count, log } = options;
    log.onChange = () => this.#tellAll();
    // Counts for all workers what is counted by machine: wrong keys, and quotas without Redis.
    new RateLimiterClusterMaster();
    cluster.setupPrimary({ exec: program, args: [], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    this.#slots = Array.from({ length: count }, (_, index) => new WorkerSlot(index + 1, this));
    const [first, ...others] = this.#slots;
    first?.start();
    void this.listening.then(() => {
      if (!this.#isDraining) for (const slot of others) slot.start();
    });
  }

  /** Ends all of them. @returns whether all finished their requests */
  async drain(): Promise<boolean> {
    this.#isDraining = true;
    const deadline = setTimeout(() => {
      for (const slot of this.#slots) slot.kill();
    }, this.options.drainTime);
    const ends = await Promise.all(this.#slots.map((slot) => slot.stop()));
    clearTimeout(deadline);
    return !this.#hasGivenUp && ends.every(Boolean);
  }

  /** How many are up. */
  get up(): number {
    return this.#slots.filter(({ isUp }) => isUp).length;
  }

  /** Whether a worker can take a connection. */
  get canServe(): boolean {
    return !this.#isDraining && this.up > 0;
  }

  /** A worker is up, or down. */
  changed(address?: string): void {
    if (address) this.#listening.resolve(address);
    this.#tellAll();
  }

  giveUp(reason: string | undefined): void {
    if (!this.#hasGivenUp) this.options.onGiveUp(reason);
    this.#hasGivenUp = true;
  }

  #tellAll(): void {
    const { up } = this;
    const workersUp = up < this.#slots.length ? `${up} of ${this.#slots.length}` : null;
    this.#hasStarted ||= workersUp === null;
    const { settings: log } = this.options.log;
    for (const slot of this.#slots) slot.tell({ workersUp, hasStarted: this.#hasStarted, log });
  }
}

/** Milliseconds from a death to the next start: doubled each time, until a worker has lived for a while. */
const pauses = { shortest: 100, longest: 10_000, forgottenAfter: 60_000 };
/** Ten seconds of failing starts. */
const maxFailedStarts = 6;

/** How a process ended. */
interface End {
  workerPid: number | undefined;
  exitCode: number | null;
  signal: string | null;
}

/** One of the workers: when its process dies, another follows. */
class WorkerSlot {
  isUp = false;
  #worker: Worker | undefined;
  #ended: Promise<boolean> = Promise.resolve(true);
  #isStopping = false;
  #hasBeenUp = false;
  /** In a row. */
  #failedStarts = 0;
  #pause = pauses.shortest;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly number: number,
    private readonly workers: Workers,
  ) {}

  start(): void {
    const { log, output } = this.workers.options;
    const worker = cluster.fork({ [workerVariable]: `${this.number}` });
    const { process: child } = worker;
    this.#worker = worker;
    // Sending to a worker that has died fails; its end is handled below.
    worker.on('error', () => undefined);
    worker.on('message', ({ ready }: Partial<WorkerReady>) => {
      if (ready !== undefined) this.#ready(ready);
    });
    if (child.stdout) relayLines(child.stdout, output);
    this.#ended = new Promise((done) => {
      // `close` comes after `exit`, when all that it printed has been read.
      child.once('close', (exitCode, signal) => done(this.#end({ workerPid: child.pid, exitCode, signal })));
    });
    // At its `close` this worker no longer counts as up.
    handOver(worker, () => this.workers.canServe);
    log.logger.info({ worker: this.number, workerPid: child.pid }, 'worker started');
  }

  /** @returns false when it was up and did not end with 0 */
  stop(): Promise<boolean> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    this.#worker?.process.kill('SIGTERM');
    return this.#ended;
  }

  kill(): void {
    this.#worker?.process.kill('SIGKILL');
  }

  tell(state: ClusterState): void {
    if (this.isUp && this.#worker?.isConnected()) this.#worker.send(state);
  }

  #ready(address: string): void {
    this.isUp = true;
    this.#hasBeenUp = true;
    this.#failedStarts = 0;
    this.#timer = setTimeout(() => {
      this.#pause = pauses.shortest;
    }, pauses.forgottenAfter).unref();
    const fields = { worker: this.number, workerPid: this.#worker?.process.pid };
    this.workers.options.log.logger.info(fields, 'worker ready');
    this.workers.changed(address);
  }

  #end(end: End): boolean {
    const { logger } = this.workers.options.log;
    const fields = { worker: this.number, ...end };
    const wasUp = this.isUp;
    this.#worker = undefined;
    this.isUp = false;
    clearTimeout(this.#timer);
    if (this.#isStopping) {
      logger.info(fields, 'worker ended');
      return !wasUp || end.exitCode === 0;
    }
    if (!wasUp) this.#failedStarts += 1;
    if (!this.#hasBeenUp || this.#failedStarts >= maxFailedStarts) {
      logger.fatal(fields, 'worker died, and none will follow');
      this.workers.giveUp(this.#reason(end));
    } else {
      logger.error({ ...fields, restartInMs: this.#pause }, 'worker died');
      this.#timer = setTimeout(() => this.start(), this.#pause);
      this.#pause = Math.min(2 * this.#pause, pauses.longest);
    }
    this.workers.changed();
    return true;
  }

  #reason({ exitCode, signal }: End): string | undefined {
    // It has printed why it cannot start.
    if (!this.#hasBeenUp && exitCode) return undefined;
    const cause = signal ? `signal ${signal}` : `exit code ${exitCode}`;
    const times = this.#hasBeenUp ? `${maxFailedStarts} times in a row, the last time` : 'at the start';
    return `Worker ${this.number} ended before it could serve, ${times}: ${cause}.`;
  }
}

/**
 * Passes on what a worker prints, in whole lines: if workers wrote to one pipe by themselves, lines would be torn, because
 * only writes of up to 4096 bytes are atomic (PIPE_BUF, pipe(7)). The rest of a line whose writer was killed is left out.
 */
function relayLines(from: Readable, to: { write(lines: string): void }): void {
  let rest = '';
  from.setEncoding('utf8').on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1;
    if (end > 0) to.write(rest + text.slice(0, end));
    rest = end > 0 ? text.slice(end) : rest + text;
  });
}
