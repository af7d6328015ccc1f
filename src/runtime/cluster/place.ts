import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { handOver } from './hand-over.ts';
import { type Answer, type FromWorker, placeVariable, type Question } from './messages.ts';
import { relayLines } from './relay.ts';

export interface PlaceOptions {
  /** Of all workers. */
  count: number;
  log: Logger;
  /** Takes what the worker prints, in whole lines. */
  output: { write(lines: string): void };
  /** Whether another worker can take a connection. */
  hasOther(place: Place): boolean;
  onReady(address: string): void;
  onDown(): void;
  /** No further worker is started here. Without a reason where the worker has told its own. */
  onGiveUp(reason: string | undefined): void;
}

export interface Report {
  /** Of the process: no two are the same, one after the other in one place neither. */
  id: number;
  answer: unknown;
}

/** Milliseconds from a death to the next worker: doubled each time, until one has lived for a while. */
const pauses = { shortest: 100, longest: 10_000, forgottenAfter: 60_000 };
/** Ten seconds of failing starts. */
const mostDeaths = 6;

/** The place of one worker: one that dies is followed by another. */
export class Place {
  isUp = false;
  #worker: Worker | undefined;
  #ended: Promise<boolean> = Promise.resolve(true);
  #isStopping = false;
  #hasBeenUp = false;
  /** In a row, before any was ready. */
  #deaths = 0;
  #pause = pauses.shortest;
  #next: NodeJS.Timeout | undefined;
  #health: NodeJS.Timeout | undefined;
  /** Who waits for the worker's answer, by the number of the question. */
  readonly #asking = new Map<number, (answer: unknown) => void>();
  #questions = 0;

  constructor(
    readonly number: number,
    private readonly options: PlaceOptions,
  ) {}

  start(): void {
    const { log, output, count, hasOther } = this.options;
    const worker = cluster.fork({ [placeVariable]: `${this.number}/${count}` });
    this.#worker = worker;
    // A message to a worker that has died; its end is told below.
    worker.on('error', () => undefined);
    worker.on('message', ({ ready, answerTo, answer }: Partial<FromWorker & Answer>) => {
      if (ready !== undefined) this.#ready(ready);
      if (answerTo !== undefined) this.#asking.get(answerTo)?.(answer);
    });
    if (worker.process.stdout) relayLines(worker.process.stdout, output);
    handOver(worker, () => hasOther(this));
    this.#ended = new Promise((done) => {
      // After `exit`: all that it printed has been read.
      worker.process.once('close', (code, signal) => done(this.#end(worker.process.pid, code, signal)));
    });
    log.info({ worker: this.number, workerPid: worker.process.pid }, 'worker started');
  }

  /** @returns false when it had been serving and did not end by itself, with 0 */
  stop(): Promise<boolean> {
    this.#isStopping = true;
    clearTimeout(this.#next);
    this.#worker?.process.kill('SIGTERM');
    return this.#ended;
  }

  kill(): void {
    this.#worker?.process.kill('SIGKILL');
  }

  tell(message: object): void {
    if (this.isUp && this.#worker?.isConnected()) this.#worker.send(message);
  }

  /**
   * Asks the worker to report.
   *
   * @returns which process was asked, and undefined in place of an answer that has not come in time (ms); undefined when
   *   no worker is up here
   */
  async ask(milliseconds: number): Promise<Report | undefined> {
    const id = this.#worker?.id;
    if (!this.isUp || id === undefined) return undefined;
    this.#questions += 1;
    const question = this.#questions;
    let timer: NodeJS.Timeout | undefined;
    const answer = await new Promise<unknown>((done) => {
      this.#asking.set(question, done);
      timer = setTimeout(done, milliseconds);
      this.tell({ question } satisfies Question);
    });
    clearTimeout(timer);
    this.#asking.delete(question);
    return { id, answer };
  }

  #ready(address: string): void {
    this.isUp = true;
    this.#hasBeenUp = true;
    this.#deaths = 0;
    this.#health = setTimeout(() => {
      this.#pause = pauses.shortest;
    }, pauses.forgottenAfter).unref();
    this.options.log.info({ worker: this.number, workerPid: this.#worker?.process.pid }, 'worker ready');
    this.options.onReady(address);
  }

  #end(workerPid: number | undefined, exitCode: number | null, signal: string | null): boolean {
    const { log, onDown } = this.options;
    const wasUp = this.isUp;
    const fields = { worker: this.number, workerPid, exitCode, signal };
    this.#worker = undefined;
    this.isUp = false;
    clearTimeout(this.#health);
    if (this.#isStopping) {
      log.info(fields, 'worker ended');
      return !wasUp || exitCode === 0;
    }
    if (!wasUp) this.#deaths += 1;
    if (!this.#hasBeenUp || this.#deaths >= mostDeaths) this.#giveUp(fields);
    else this.#startLater(fields);
    onDown();
    return true;
  }

  #startLater(fields: object): void {
    this.options.log.error({ ...fields, restartInMs: this.#pause }, 'worker died');
    this.#next = setTimeout(() => this.start(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, pauses.longest);
  }

  #giveUp(fields: { exitCode: number | null; signal: string | null }): void {
    this.options.log.fatal(fields, 'worker died, and none will follow');
    const cause = fields.signal ? `signal ${fields.signal}` : `exit code ${fields.exitCode}`;
    const times = this.#hasBeenUp ? `${mostDeaths} times in a row, the last time` : 'at the start';
    const isTold = !this.#hasBeenUp && Boolean(fields.exitCode);
    this.options.onGiveUp(
      isTold ? undefined : `Worker ${this.number} ended before it could serve, ${times}: ${cause}.`,
    );
  }
}
