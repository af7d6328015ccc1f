import type { Pool } from 'pg';
import { Incident } from '../../runtime/log/incident.ts';
import { codeOf, isConflict, isLoss, unavailable } from './errors.ts';
import type { Log } from './options.ts';

/** How long (ms) somebody must be waiting for a connection, without a break, until that is reported. */
const crowdedAfter = 1000;
/** A statement that times out does so every ten seconds; others succeed meanwhile. */
const quietAfterFailures = 15_000;

/** Reports, in a line each, when a database is lost and back, and when its connections are used up. */
export class Availability {
  readonly #pool: Pool;
  readonly #loss: Incident;
  readonly #failures: Incident;
  readonly #crowd: Incident;
  #crowded: NodeJS.Timeout | undefined;
  /** What has never been there is not lost: whoever starts the service is told by its failure. */
  #hasAnswered = false;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#loss = new Incident({
      onStart: (fields) => log.warn(fields, 'the database is lost'),
      onEnd: (ms, failures) => log.info({ ms, failures }, 'the database is back'),
    });
    this.#failures = new Incident(
      {
        onStart: (fields) => log.warn(fields, 'the database does not carry out statements'),
        onEnd: (ms, failures) => log.info({ ms, failures }, 'the database carries out statements again'),
      },
      quietAfterFailures,
    );
    this.#crowd = new Incident({
      onStart: (fields) => log.warn(fields, 'all connections to the database are in use'),
      onEnd: (ms) => log.info({ ms }, 'connections to the database are free again'),
    });
  }

  /** A statement has been carried out. */
  answered(): void {
    this.#hasAnswered = true;
    this.#loss.recovered();
    this.#failures.recovered();
  }

  /** A connection could not be had, or a statement has failed: perhaps by its own fault. */
  failed(error: unknown): void {
    if (!this.#hasAnswered) return;
    const { message } = error as Error;
    const fields = { code: codeOf(error), ...(message && { reason: message }) };
    if (isLoss(error)) this.#loss.occurred(fields);
    else if (unavailable(error) && !isConflict(error)) this.#failures.occurred(fields);
  }

  /** To be called when a connection is asked for, and when it has been given. */
  look(): void {
    if (this.#pool.waitingCount > 0) this.#crowded ??= setTimeout(() => this.#report(), crowdedAfter).unref();
    else if (this.#crowded) {
      clearTimeout(this.#crowded);
      this.#crowded = undefined;
      this.#crowd.recovered();
    }
  }

  #report(): void {
    this.#crowd.occurred({ connections: this.#pool.totalCount, waiting: this.#pool.waitingCount });
  }
}
