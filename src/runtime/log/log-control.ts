import { hostname } from 'node:os';
import type { DestinationStream, Level, Logger } from 'pino';
import { createLog, type LogBase } from './logging.ts';

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = Level | 'silent';

/** What can be changed while the service runs. */
export interface LogSettings {
  level: LogLevel;
  /** The share of the requests without a fault, from 0 to 1, that get a line. */
  sample: number;
}

/** The log of a process, and how much is logged. */
export class LogControl {
  /** Called after a change. */
  onChange: ((settings: LogSettings) => void) | undefined;
  readonly log: Logger;
  #sample: number;
  readonly #stream: DestinationStream;
  readonly #base: string;

  /**
   * @param stream standard output when absent, one write per line
   * @param worker the number of the worker, for each line
   */
  constructor({ level, sample }: LogSettings, stream: DestinationStream = process.stdout, worker?: number) {
    const base: LogBase = { pid: process.pid, host: hostname(), ...(worker && { worker }) };
    this.log = createLog(level, stream, base);
    this.#sample = sample;
    this.#stream = stream;
    this.#base = JSON.stringify(base).slice(1, -1);
  }

  /** Writes a line at the level info, whatever the level is. @param members as JSON, each after a comma */
  write(members: string, msg: string): void {
    this.#stream.write(`{"level":30,"time":${Date.now()},${this.#base}${members},"msg":"${msg}"}\n`);
  }

  get sample(): number {
    return this.#sample;
  }

  get settings(): LogSettings {
    return { level: this.log.level as LogLevel, sample: this.#sample };
  }

  /** Takes over settings. Loggers made of the log, Fastify's for instance, have no level of their own, and follow. */
  set({ level, sample }: LogSettings): void {
    this.log.level = level;
    this.#sample = sample;
  }

  /** Changes settings for an operator, and logs that. @param by who asks, for the line */
  change(wanted: Partial<LogSettings>, by: object): LogSettings {
    const before = this.settings;
    const after = { ...before, ...wanted };
    // Told at every level: without this line the gap that follows would be a riddle. A silent log stays silent.
    if (before.level !== 'silent' || after.level !== 'silent') this.log.level = 'info';
    this.log.info({ before, after, ...by }, 'log settings changed');
    this.set(after);
    this.onChange?.(after);
    return after;
  }
}
