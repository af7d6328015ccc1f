import type { FastifyInstance } from 'fastify';
import type { FeatureContext, Parts } from '../../feature.ts';
import { measureApp, measureDependencies, observersFor } from './measure.ts';
import { ClusterMetrics, Metrics, reportToParent } from './metrics.ts';
import { measureProcess } from './process-metrics.ts';

/** Measures a process that serves. A worker reports to its parent. */
export function measureService(context: FeatureContext): Parts {
  const { metrics, close } = measuredProcess(context);
  const { operations, ...observers } = observersFor(metrics);
  if (context.isWorker) reportToParent(metrics);
  else metrics.read({ ...workersUp, read: () => 1 });
  return {
    observers,
    http(app, database) {
      metrics.read(
        ...measureDependencies(database, context.running),
        ...measureApp(app),
        ...context.running.flatMap(({ metrics = [] }) => metrics),
      );
      app.addHook('onReady', async () => operations.zero(app));
    },
    operations: (app) => serveMetrics(app, () => metrics.registry.metrics()),
    close,
  };
}

/** Measures the parent of workers, and adds what they report. */
export function measureWorkers(context: FeatureContext): Parts {
  const { metrics, close } = measuredProcess(context);
  const cluster = new ClusterMetrics(metrics);
  metrics.read(
    { ...workersUp, read: () => cluster.up },
    {
      name: 'service_workers_silent',
      help: 'Workers that have not reported lately.',
      read: () => cluster.silent,
    },
  );
  return {
    operations: (app) => serveMetrics(app, () => cluster.text()),
    close,
  };
}

const workersUp = {
  name: 'service_workers_up',
  help: 'Processes that serve.',
};

function measuredProcess({ config, output }: FeatureContext) {
  const metrics = new Metrics(`${config.name.replaceAll('-', '_')}_`);
  const database = config.database.url ? 'postgres' : 'embedded';
  const { revision = '' } = config;
  const labels = [config.version, revision, process.version, database];
  metrics.read(
    {
      name: 'service_info',
      help: 'Always 1.',
      labels: ['version', 'revision', 'node', 'database'],
      of: 'max',
      read: () => [[1, ...labels]],
    },
    {
      name: 'service_log_lines_dropped_total',
      help: 'Log lines that could not be written.',
      read: () => output?.dropped ?? 0,
    },
  );
  const stop = measureProcess(metrics);
  return { metrics, close: async () => stop() };
}

/** `/metrics`, in Prometheus' text format. */
function serveMetrics(app: FastifyInstance, text: () => Promise<string>) {
  app.get('/metrics', async (_, reply) =>
    reply.type(Metrics.contentType).send(await text()),
  );
}
