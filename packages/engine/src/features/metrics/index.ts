import { feature } from '../../feature.ts';

/** `/metrics` on the operations port (docs/observe.md). */
export const metrics = feature({
  name: 'metrics',
  async start(context) {
    if (context.config.operations.port === 0) return undefined;
    const { measureService } = await import('./start.ts');
    return measureService(context);
  },
  async supervise(context) {
    if (context.config.operations.port === 0) return undefined;
    const { measureWorkers } = await import('./start.ts');
    return measureWorkers(context);
  },
});
