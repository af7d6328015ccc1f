import cluster, { type Worker } from 'node:cluster';
import { Registry } from '@prometheus-io/client';
import type { Metrics } from './metrics.ts';

/** How long (ms) a scrape waits for workers. Prometheus itself waits ten seconds. */
const patience = 2000;

type Report = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

interface Message {
  /** The parent asks, or a worker answers, with this number. */
  scrape?: number;
  report?: Report | undefined;
}

/** In a worker: sends the metrics of this process when its parent asks for them. */
export function reportToParent({ registry }: Metrics): void {
  process.on('message', async ({ scrape }: Message) => {
    if (scrape === undefined) return;
    const report = await registry.getMetricsAsJSON().catch(() => undefined);
    if (process.connected) process.send?.({ scrape, report } satisfies Message);
  });
}

/**
 * In the parent: adds the metrics of all workers. The library's `AggregatorRegistry` takes back what a killed worker has
 * counted, which Prometheus counts once more as a restart, and one worker that hangs fails its scrape. Here the counts of
 * a worker stay as its last answer had them.
 */
export class ClusterMetrics {
  readonly #workers = new Map<number, Worker>();
  /** What each process had counted at its last answer. */
  readonly #counted = new Map<number, Report>();
  /** What processes that have ended had counted, in one sum. */
  #ended: Report = [];
  #scrapes = 0;
  #silent = 0;

  constructor(private readonly own: Metrics) {
    cluster.on('listening', (worker) => this.#workers.set(worker.id, worker));
    cluster.on('exit', ({ id }) => this.#workers.delete(id));
    own.gauge('animal_store_workers_up', 'Processes that serve.', () => [[this.#workers.size]]);
    own.gauge('animal_store_workers_silent', 'Workers that did not answer this scrape.', () => [[this.#silent]]);
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    const answers = await this.#ask();
    for (const [id, report] of answers)
      this.#counted.set(
        id,
        report.filter(({ type }) => type !== 'gauge'),
      );
    const silent = [...this.#workers.keys()].filter((id) => !answers.has(id));
    this.#silent = silent.length;
    for (const [id, counted] of this.#counted) {
      if (this.#workers.has(id)) continue;
      this.#counted.delete(id);
      this.#ended = await Registry.aggregate([this.#ended, counted]).getMetricsAsJSON();
    }
    const earlier = silent.map((id) => this.#counted.get(id) ?? []);
    const own = await this.own.registry.getMetricsAsJSON();
    return Registry.aggregate([own, ...answers.values(), ...earlier, this.#ended]).metrics();
  }

  /** @returns the reports of workers that answered in time */
  async #ask(): Promise<Map<number, Report>> {
    const scrape = ++this.#scrapes;
    const asked = [...this.#workers.values()].filter((worker) => worker.isConnected());
    const answers = new Map<number, Report>();
    await new Promise<void>((done) => {
      const take = (worker: Worker, answer: Message) => {
        if (answer.scrape !== scrape || !answer.report) return;
        answers.set(worker.id, answer.report);
        if (answers.size === asked.length) end();
      };
      const end = () => {
        clearTimeout(timer);
        cluster.off('message', take);
        done();
      };
      const timer = setTimeout(end, asked.length > 0 ? patience : 0);
      cluster.on('message', take);
      for (const worker of asked) worker.send({ scrape } satisfies Message);
    });
    return answers;
  }
}
