import cluster from 'node:cluster';
import type { Reading } from '#engine/feature.js';
import { ClusterMetrics, Metrics } from '#engine/features/metrics/metrics.js';
import { measureProcess } from '#engine/features/metrics/process-metrics.js';
import { afterEach, expect, test } from '../../support/jest.ts';

/** @returns the lines of a scrape that have values */
const valuesIn = (text: string) =>
  text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

test('values are read at each scrape, and a series that is not returned is gone', async () => {
  const metrics = new Metrics();
  let readings: Reading[] = [
    [1, 'a'],
    [2, 'b'],
    [3, 'b'],
  ];
  const read = () => readings;
  const labels = ['queue'];
  metrics.read(
    { name: 'waiting', help: 'Waiting.', labels, read },
    { name: 'oldest', help: 'Oldest.', labels, of: 'max', read },
  );
  expect(valuesIn(await metrics.registry.metrics())).toEqual([
    'waiting{queue="a"} 1',
    'waiting{queue="b"} 5',
    'oldest{queue="a"} 1',
    'oldest{queue="b"} 3',
  ]);
  readings = [[4, 'b']];
  expect(valuesIn(await metrics.registry.metrics())).toEqual([
    'waiting{queue="b"} 4',
    'oldest{queue="b"} 4',
  ]);
});

/**
 * The parent sees workers by the events of `node:cluster`; these tests emit
 * them.
 */
const worker = (id: number) => ({ id });
afterEach(() => void cluster.removeAllListeners());

test('the counters of a worker outlive it, its gauges do not', async () => {
  const parent = new ClusterMetrics(new Metrics());
  const reports = await Promise.all(
    [1, 2].map(async (id) => {
      const metrics = new Metrics();
      metrics.counter('answers_total', 'Answers.').inc(id * 10);
      metrics.read({ name: 'active', help: 'Active.', read: () => id });
      cluster.emit('listening', worker(id));
      return { report: await metrics.registry.getMetricsAsJSON() };
    }),
  );
  for (const [at, report] of reports.entries())
    cluster.emit('message', worker(at + 1), report);
  expect(valuesIn(await parent.text())).toEqual([
    'answers_total 30',
    'active 3',
  ]);
  expect({ up: parent.up, silent: parent.silent }).toEqual({
    up: 2,
    silent: 0,
  });
  cluster.emit('exit', worker(2));
  expect(valuesIn(await parent.text())).toEqual([
    'answers_total 30',
    'active 1',
  ]);
  expect(parent.up).toBe(1);
});

test('the report of a worker that does not listen is ignored', async () => {
  const parent = new ClusterMetrics(new Metrics());
  const metrics = new Metrics();
  metrics.counter('answers_total', 'Answers.').inc();
  cluster.emit('message', worker(7), {
    report: await metrics.registry.getMetricsAsJSON(),
  });
  expect(valuesIn(await parent.text())).toEqual([]);
});

test('the process is measured until it is stopped', async () => {
  const metrics = new Metrics();
  const stop = measureProcess(metrics);
  const names = new Set(
    valuesIn(await metrics.registry.metrics()).map((line) =>
      line.replace(/[{ ].*/, ''),
    ),
  );
  stop();
  for (const name of [
    'process_resident_memory_bytes',
    'process_cpu_seconds_total',
    'nodejs_eventloop_delay_seconds',
  ]) {
    expect(names).toContain(name);
  }
});
