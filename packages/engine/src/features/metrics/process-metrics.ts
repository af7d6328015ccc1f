import { readdirSync, readFileSync } from 'node:fs';
import {
  constants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks';
import type { Reading } from '../../feature.ts';
import type { Metrics } from './metrics.ts';

/** Milliseconds between two measurements of the event loop's delay. */
const delayResolution = 10;
/**
 * Milliseconds. Each scrape reports the last complete window, so several
 * scrapers do not interfere.
 */
const windowLength = 10_000;

const gcBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1,
];
const gcTypes: Record<number, string> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/**
 * Measures the process: memory, CPU, file descriptors, event loop, garbage
 * collection. It does not use the library's default metrics, which take three
 * times as long at a scrape. Each scrape, and each report of a worker, resets
 * their event loop delay; and they add up the descriptors of all workers, and
 * their utilization with that of the idle parent.
 *
 * @returns a function that stops the measurements
 */
export function measureProcess(metrics: Metrics) {
  const limit = fromProc(() => {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  });
  metrics.read(
    {
      name: 'process_resident_memory_bytes',
      help: 'Resident memory.',
      read: () => process.memoryUsage.rss(),
    },
    {
      name: 'nodejs_heap_size_used_bytes',
      help: 'Heap in use.',
      read: () => process.memoryUsage().heapUsed,
    },
    {
      name: 'process_cpu_seconds_total',
      help: 'CPU time, user and system.',
      read() {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
    },
    {
      name: 'process_open_fds',
      help: 'Open file descriptors; of several processes the most.',
      of: 'max',
      read: () => fromProc(() => readdirSync('/proc/self/fd').length),
    },
    {
      name: 'process_max_fds',
      help: 'File descriptors that a process may open.',
      of: 'min',
      read: () => limit,
    },
  );
  const timer = measureEventLoop(metrics);
  const collections = measureGarbageCollection(metrics);
  return () => {
    clearInterval(timer);
    collections.disconnect();
  };
}

/** Only Linux has /proc. */
function fromProc(read: () => number): Reading[] {
  try {
    return [[read()]];
  } catch {
    return [];
  }
}

function measureEventLoop(metrics: Metrics) {
  const delay = monitorEventLoopDelay({ resolution: delayResolution });
  delay.enable();
  // Node includes the resolution in the delay.
  const seconds = (nanoseconds: number) =>
    Math.max(0, nanoseconds / 1e9 - delayResolution / 1000) || 0;
  let began = performance.eventLoopUtilization();
  const now = () => ({
    delays: [
      [seconds(delay.percentile(50)), '0.5'],
      [seconds(delay.percentile(99)), '0.99'],
      [seconds(delay.count && delay.max), '1'],
    ] as Reading[],
    busy: performance.eventLoopUtilization(began).utilization,
  });
  let last: ReturnType<typeof now> | undefined;
  metrics.read(
    {
      name: 'nodejs_eventloop_delay_seconds',
      help: 'Delay of the event loop in the last 10 s.',
      labels: ['quantile'],
      of: 'max',
      read: () => (last ?? now()).delays,
    },
    {
      name: 'nodejs_eventloop_utilization_ratio',
      help: 'Share of the last 10 s that it was busy.',
      of: 'max',
      read: () => (last ?? now()).busy,
    },
  );
  return setInterval(() => {
    last = now();
    delay.reset();
    began = performance.eventLoopUtilization();
  }, windowLength).unref();
}

type GcEntry = PerformanceEntry & { detail: { kind: number } };

function measureGarbageCollection(metrics: Metrics) {
  const pauses = metrics.histogram(
    'v8js_gc_duration_seconds',
    'Pauses of the garbage collector.',
    gcBuckets,
    ['type'],
  );
  for (const type of Object.values(gcTypes)) pauses.zero({ type });
  const observer = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries() as GcEntry[]) {
      const type = gcTypes[detail.kind];
      if (type) pauses.observe({ type }, duration / 1000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return observer;
}
