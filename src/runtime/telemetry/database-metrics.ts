import { withTimeout } from '../with-timeout.ts';
import type { Distribution } from './instruments.ts';
import type { Metrics } from './metrics.ts';
import type { DatabaseObserver, ObservedDatabase, QueueState, SentBatch } from './observers.ts';

/** How long (ms) the database may take to answer before it counts as down. */
const patience = 1000;

/** Counts round trips. */
export function databaseMetrics(metrics: Metrics): DatabaseObserver {
  const durations = metrics.histogram('db_client_operation_duration_seconds');
  const sizes = metrics.histogram('db_client_operation_batch_size');
  const reads = metrics.counter('animal_store_read_node_reads_total');
  const known = new Map<string, { durations: Distribution; sizes: Distribution }>();
  const seriesOf = (collection: string, operation: string) => {
    const key = `${collection} ${operation}`;
    let series = known.get(key);
    if (!series) {
      series = { durations: durations.with(collection, operation, ''), sizes: sizes.with(collection, operation) };
      known.set(key, series);
    }
    return series;
  };
  return {
    sent({ collection, operation, size }: SentBatch) {
      const began = performance.now();
      const series = seriesOf(collection, operation);
      series.sizes.observe(size);
      return (failure) => {
        const seconds = (performance.now() - began) / 1000;
        if (failure === undefined) series.durations.observe(seconds);
        else durations.with(collection, operation, failure.type).observe(seconds);
      };
    },
    readOn: (node) => reads.with(node).add(),
  };
}

/** Reads queues and pools when somebody asks, and asks the database whether it is there. */
export function databaseReadings(metrics: Metrics, database: ObservedDatabase): void {
  metrics.reading('animal_store_queue_waiting', () => merged(database, ({ waiting }) => waiting, sum));
  metrics.reading('animal_store_queue_oldest_seconds', () => merged(database, ({ oldest }) => oldest / 1000, Math.max));
  metrics.reading('animal_store_queue_refused_total', () => merged(database, ({ refused }) => refused, sum));
  metrics.reading('db_client_connection_count', () =>
    database.pools.flatMap(({ pool, idle, used }) => [
      [idle, pool, 'idle'],
      [used, pool, 'used'],
    ]),
  );
  metrics.reading('db_client_connection_max', () => database.pools.map(({ pool, max }) => [max, pool]));
  metrics.reading('db_client_connection_pending_requests', () =>
    database.pools.map(({ pool, pending }) => [pending, pool]),
  );
  metrics.reading('animal_store_database_up', async () => {
    const answer = withTimeout(patience, database.ping(), () => new Error('The database is silent.'));
    return [
      [
        await answer.then(
          () => 1,
          () => 0,
        ),
      ],
    ];
  });
}

const sum = (a: number, b: number) => a + b;

/** One series for queues of the same name: there may be several for one table. */
function merged(
  { queues }: ObservedDatabase,
  read: (queue: QueueState) => number,
  add: (a: number, b: number) => number,
): Array<[number, string, string]> {
  const found = new Map<string, [number, string, string]>();
  for (const queue of queues) {
    const { collection, operation } = queue;
    const key = `${collection} ${operation}`;
    const earlier = found.get(key)?.[0];
    const value = read(queue);
    found.set(key, [earlier === undefined ? value : add(earlier, value), collection, operation]);
  }
  return [...found.values()];
}
