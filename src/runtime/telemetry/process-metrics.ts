import { readdirSync, readFileSync } from 'node:fs';
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

/** Milliseconds between two looks at the event loop. */
const resolution = 10;
const quantiles = [0.5, 0.99, 1];

const gcTypes: Record<number, string> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** The process itself: memory, CPU, file descriptors, event loop and garbage collection. @returns what ends that */
export function processMetrics(metrics: Metrics): () => void {
  metrics.reading('process_resident_memory_bytes', () => [[process.memoryUsage.rss()]]);
  metrics.reading('nodejs_heap_size_used_bytes', () => [[process.memoryUsage().heapUsed]]);
  metrics.reading('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage();
    return [[(user + system) / 1e6]];
  });
  const started = Date.now() / 1000 - process.uptime();
  metrics.reading('process_start_time_seconds', () => [[started]]);
  metrics.reading('process_open_fds', () => ofProc(() => readdirSync('/proc/self/fd').length));
  const limit = ofProc(() => Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]));
  metrics.reading('process_max_fds', () => limit);
  return endAll(eventLoop(metrics), garbageCollection(metrics));
}

/** Linux has it. */
function ofProc(read: () => number): Array<[number]> {
  try {
    return [[read()]];
  } catch {
    return [];
  }
}

function eventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  metrics.reading('nodejs_eventloop_delay_seconds', () => {
    // It measures from one look to the next, the time between them included.
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolution / 1000);
    const read = quantiles.map((of): [number, string] => {
      return [delay.count === 0 ? 0 : seconds(of === 1 ? delay.max : delay.percentile(100 * of)), `${of}`];
    });
    delay.reset();
    return read;
  });
  let last = performance.eventLoopUtilization();
  metrics.reading('nodejs_eventloop_utilization_ratio', () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return [[utilization]];
  });
  return () => delay.disable();
}

function garbageCollection(metrics: Metrics): () => void {
  const pauses = metrics.histogram('v8js_gc_duration_seconds');
  const byKind = new Map(Object.entries(gcTypes).map(([kind, type]) => [Number(kind), pauses.with(type)]));
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { detail: { kind: number } }).detail;
      byKind.get(kind)?.observe(entry.duration / 1000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => observer.disconnect();
}

function endAll(...ends: Array<() => void>): () => void {
  return () => {
    for (const end of ends) end();
  };
}
