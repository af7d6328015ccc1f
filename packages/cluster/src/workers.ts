import cluster, { type Worker } from 'node:cluster';
import type { Readable } from 'node:stream';
import { handOver } from './hand-over.ts';
import { type ClusterState, workerVariable } from './worker.ts';

type WorkersLog = Record<
  'info' | 'error' | 'fatal',
  (fields: object, message: string) => void
>;

export interface WorkersOptions<Shared> {
  /** The file that each worker runs. */
  program: string;
  count: number;
  /** Gets a line when a worker starts, is ready, ends or dies. */
  log: WorkersLog;
  /** Sent to the workers, and again by `share`. */
  shared: Shared;
  /** Receives the workers' output, in whole lines. */
  output: { write(lines: string): void };
  /** How long (ms) a drain may take before the remaining workers are killed. */
  drainTime: number;
  /**
   * Called once when no worker can start, so that the caller drains. No reason
   * when the worker has printed it.
   */
  onGiveUp(reason: string | undefined): void;
}

/** How long (ms) a worker may take to answer. */
const answerTimeout = 2500;

/** Starts, restarts, informs, asks and stops the worker processes. */
export class Workers<Shared> {
  readonly #listening = Promise.withResolvers<string>();
  /**
   * Resolves to the address of the service when the first worker listens; never
   * when no worker can start. It rejects when a drain comes first.
   */
  readonly listening = this.#listening.promise;
  readonly #slots: WorkerSlot[] = [];
  #shared: Shared;
  #hasGivenUp = false;
  #isDraining = false;
  #hasStarted = false;

  /**
   * Starts one worker, and the others when it listens, so that a port in use is
   * reported once.
   */
  constructor(readonly options: WorkersOptions<Shared>) {
    this.#shared = options.shared;
    cluster.setupPrimary({
      exec: options.program,
      args: [],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    for (let number = 1; number <= options.count; number += 1)
      this.#slots.push(new WorkerSlot(number, this));
    const [first, ...others] = this.#slots;
    first?.start();
    const startOthers = () => {
      for (const slot of others) slot.start();
    };
    this.listening.then(startOthers, () => undefined);
  }

  /** Sends another value to all workers. */
  share(value: Shared) {
    this.#shared = value;
    this.#sendAll();
  }

  /**
   * Stops all workers.
   *
   * @returns whether all finished their requests
   */
  async drain() {
    this.#isDraining = true;
    this.#listening.reject(new Error('The workers stop.'));
    const deadline = setTimeout(() => {
      for (const slot of this.#slots) slot.kill();
    }, this.options.drainTime);
    const ends = await Promise.all(this.#slots.map((slot) => slot.stop()));
    clearTimeout(deadline);
    return !this.#hasGivenUp && ends.every(Boolean);
  }

  get up() {
    return this.#slots.filter(({ isUp }) => isUp).length;
  }

  /**
   * Asks all workers over IPC, which needs no connection to their port.
   *
   * @returns the first answer; never when all hang
   * @throws AggregateError when all workers have failed
   */
  ask() {
    return Promise.any(this.#slots.map((slot) => slot.ask()));
  }

  /** Number of workers that have not answered a question for too long. */
  get silent() {
    return this.#slots.filter(({ isSilent }) => isSilent).length;
  }

  /** Whether a worker can take a connection. */
  get canServe() {
    return !this.#isDraining && this.up > 0;
  }

  /** Called by a slot whose worker is up or has ended. */
  changed(address?: string) {
    if (address) this.#listening.resolve(address);
    this.#sendAll();
  }

  /** Called by a slot that will not be restarted. */
  giveUp(reason: string | undefined) {
    if (!this.#hasGivenUp) this.options.onGiveUp(reason);
    this.#hasGivenUp = true;
  }

  #sendAll() {
    const { up } = this;
    const { count } = this.options;
    if (up === count) this.#hasStarted = true;
    const state: ClusterState<Shared> = {
      up,
      count,
      hasStarted: this.#hasStarted,
      shared: this.#shared,
    };
    for (const slot of this.#slots) slot.send(state);
  }
}

/**
 * Milliseconds from a crash to the restart. The pause doubles each time, and is
 * reset after a minute without a crash.
 */
const pauses = { shortest: 100, longest: 10_000, forgottenAfter: 60_000 };
/** These take about ten seconds. */
const maxFailedStarts = 6;

interface WorkerMessage {
  /** The address on which it listens. */
  ready?: string;
  /** The answer to a question, or the message of its error. */
  reply?: object | string;
}

/** The members of the log line about a worker that has ended. */
interface WorkerEnd {
  worker: number;
  exitCode: number | null;
  signal: string | null;
}

/** Keeps one worker running: restarts its process after a crash. */
class WorkerSlot {
  isUp = false;
  #question: PromiseWithResolvers<object> | undefined;
  #askedAt = 0;
  #worker: Worker | undefined;
  #ended = Promise.resolve(true);
  #isStopping = false;
  #hasBeenUp = false;
  /** Consecutive. */
  #failedStarts = 0;
  #pause = pauses.shortest;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly number: number,
    private readonly workers: Workers<unknown>,
  ) {}

  start() {
    const { log, output } = this.workers.options;
    const worker = cluster.fork({ [workerVariable]: `${this.number}` });
    const { process: child } = worker;
    this.#worker = worker;
    // Sending to a dead worker fails; `close` handles its end.
    worker.on('error', () => undefined);
    worker.on('message', ({ ready, reply }: WorkerMessage) => {
      if (ready !== undefined) this.#ready(ready);
      if (reply) this.#answered(reply);
    });
    if (child.stdout) relayLines(child.stdout, output);
    const ended = Promise.withResolvers<boolean>();
    this.#ended = ended.promise;
    // `close` follows `exit`, when all output has been read.
    child.once('close', (exitCode, signal) => {
      const isClean = this.#end({ ...this.#fields, exitCode, signal });
      ended.resolve(isClean);
    });
    // Registered after the listener above, so that this worker no longer counts
    // as up.
    handOver(worker, () => this.workers.canServe);
    log.info(this.#fields, 'worker started');
  }

  /** Of each log line. */
  get #fields() {
    return { worker: this.number, workerPid: this.#worker?.process.pid };
  }

  /**
   * Stops the worker. One that has crashed before counts as clean: it was
   * reported then.
   *
   * @returns false when it was up and its exit code was not 0
   */
  stop() {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    this.#worker?.process.kill('SIGTERM');
    return this.#ended;
  }

  kill() {
    this.#worker?.process.kill('SIGKILL');
  }

  send(message: ClusterState<unknown> | { ask: true }) {
    if (this.isUp && this.#worker?.isConnected()) this.#worker.send(message);
  }

  get isSilent() {
    const hasWaited = performance.now() - this.#askedAt > answerTimeout;
    return this.isUp && this.#question !== undefined && hasWaited;
  }

  /** Questions share the answer to an open one. */
  async ask() {
    if (!this.isUp) throw new Error('The workers are starting.');
    if (!this.#question) {
      this.#question = Promise.withResolvers();
      this.#askedAt = performance.now();
      this.send({ ask: true });
    }
    return this.#question.promise;
  }

  #answered(reply: object | string) {
    if (typeof reply === 'string') this.#question?.reject(new Error(reply));
    else this.#question?.resolve(reply);
    this.#question = undefined;
  }

  #ready(address: string) {
    this.isUp = true;
    this.#hasBeenUp = true;
    this.#failedStarts = 0;
    this.#timer = setTimeout(() => {
      this.#pause = pauses.shortest;
    }, pauses.forgottenAfter).unref();
    this.workers.options.log.info(this.#fields, 'worker ready');
    this.workers.changed(address);
  }

  #end(end: WorkerEnd) {
    const wasUp = this.isUp;
    this.isUp = false;
    this.#answered('The worker has ended.');
    clearTimeout(this.#timer);
    if (this.#isStopping) {
      this.workers.options.log.info(end, 'worker ended');
      return !wasUp || end.exitCode === 0;
    }
    if (!wasUp) this.#failedStarts += 1;
    if (!this.#hasBeenUp || this.#failedStarts >= maxFailedStarts)
      this.#giveUp(end);
    else this.#restart(end);
    this.workers.changed();
    return true;
  }

  #restart(end: WorkerEnd) {
    const fields = { ...end, restartInMs: this.#pause };
    this.workers.options.log.error(fields, 'worker died');
    this.#timer = setTimeout(() => this.start(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, pauses.longest);
  }

  #giveUp(end: WorkerEnd) {
    const message = 'worker died and will not be restarted';
    this.workers.options.log.fatal(end, message);
    const { worker, exitCode, signal } = end;
    // A worker that exits at its start has printed the reason.
    const isPrinted = !this.#hasBeenUp && exitCode;
    if (isPrinted) return this.workers.giveUp(undefined);
    const cause = signal ? `signal ${signal}` : `exit code ${exitCode}`;
    let times = 'at the start';
    if (this.#hasBeenUp)
      times = `${maxFailedStarts} times in a row, the last time`;
    this.workers.giveUp(
      `Worker ${worker} ended before it could serve, ${times}: ${cause}.`,
    );
  }
}

/**
 * Relays a worker's output in whole lines. If workers wrote to one pipe
 * themselves, lines would be torn: only writes of up to 4096 bytes are atomic
 * (PIPE_BUF, pipe(7)). An incomplete last line of a killed worker is dropped.
 */
function relayLines(from: Readable, to: { write(lines: string): void }) {
  let rest = '';
  from.setEncoding('utf8').on('data', (text: string) => {
    const lines = rest + text;
    const end = lines.lastIndexOf('\n') + 1;
    if (end > 0) to.write(lines.slice(0, end));
    rest = lines.slice(end);
  });
}
