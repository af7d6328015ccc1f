import { hostname } from 'node:os';
import type { Redactor } from '@animal-store/log/redactor';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../../config/config.ts';

/** Settings that can be changed while the service runs. */
export type LogSettings = Pick<Config['log'], 'level' | 'sample'>;

/** The log of a process: JSON lines. */
export class Log {
  onChange: ((settings: LogSettings) => void) | undefined;
  readonly logger: Logger;
  /** Removes secrets from what modules, plugins and errors say. */
  redactor: Redactor | undefined;
  /** The members of every line, as JSON. */
  base = '';
  sample: number;

  /** @param stream standard output when absent, one write per line */
  constructor(
    { level, sample }: LogSettings,
    readonly stream: DestinationStream = process.stdout,
  ) {
    const write = (line: string) =>
      stream.write(this.redactor?.withoutSecrets(line) ?? line);
    // Overrides Fastify's serializer, which would change `req`.
    const serializers = { req: (req: unknown) => req, err: errorFields };
    this.logger = pino({ level, base: null, serializers }, { write });
    this.sample = sample;
    this.bind({ pid: process.pid, host: hostname() });
  }

  /** Adds members to every line. */
  bind(members: object) {
    this.logger.setBindings(members);
    this.base += `,${JSON.stringify(members).slice(1, -1)}`;
  }

  get settings(): LogSettings {
    return {
      level: this.logger.level as LogSettings['level'],
      sample: this.sample,
    };
  }

  /** Child loggers, like Fastify's, inherit the level. */
  set settings({ level, sample }: LogSettings) {
    this.logger.level = level;
    this.sample = sample;
  }
}

/**
 * Omits other members that drivers attach to errors: Redis' failed command may
 * contain its password.
 */
function errorFields(error: unknown): object {
  if (!(error instanceof Error))
    return { type: typeof error, message: String(error), stack: '' };
  const { name, message, stack = '', cause } = error;
  const { code } = error as NodeJS.ErrnoException;
  const fields = { type: name, code, message, stack };
  if (error instanceof AggregateError)
    return { ...fields, causes: error.errors.map(errorFields) };
  if (cause === undefined) return fields;
  return { ...fields, causes: [errorFields(cause)] };
}
