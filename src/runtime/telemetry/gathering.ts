import { type Metrics, type ReportedMetric, together } from './metrics.ts';

/** What a worker has reported; undefined when it has not answered in time. */
export interface WorkerReport {
  /** Of the process. */
  id: number;
  answer: unknown;
}

/** How long (ms) a scrape waits for workers. Prometheus itself waits ten seconds. */
const patience = 2000;

/**
 * Adds the metrics of all workers, and those of their parent. A counter must not go back when a worker dies or does not
 * answer: Prometheus would take that for a restart, and count all that is left once more. So what a process has counted
 * stays, as far as the last scrape knew.
 */
export class Gathering {
  readonly #own: Metrics;
  readonly #ask: (milliseconds: number) => Promise<WorkerReport[]>;
  /** What each process had counted at its last answer. */
  readonly #counted = new Map<number, ReportedMetric[]>();
  /** The sum of what those had counted that have ended. */
  #ended: ReportedMetric[] = [];
  #silent = 0;

  /**
   * @param own of the parent
   * @param ask asks all workers to report, within a time (ms)
   */
  constructor(own: Metrics, ask: (milliseconds: number) => Promise<WorkerReport[]>) {
    this.#own = own;
    this.#ask = ask;
    own.reading('animal_store_workers_silent', () => [[this.#silent]]);
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    const answers = (await this.#ask(patience)) as Array<{ id: number; answer: ReportedMetric[] | undefined }>;
    const reports = answers.map(({ id, answer }) => {
      if (answer) this.#counted.set(id, answer.filter(isCount));
      return answer ?? this.#counted.get(id) ?? [];
    });
    this.#silent = answers.filter(({ answer }) => !answer).length;
    for (const [id, counted] of this.#counted) {
      if (answers.some((one) => one.id === id)) continue;
      this.#counted.delete(id);
      this.#ended = (await together([this.#ended, counted]).getMetricsAsJSON()) as unknown as ReportedMetric[];
    }
    return together([await this.#own.report(), ...reports, this.#ended]).metrics();
  }
}

function isCount({ type }: ReportedMetric): boolean {
  return type !== 'gauge';
}
