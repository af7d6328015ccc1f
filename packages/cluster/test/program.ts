import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { Workers } from '@animal-store/cluster';
import { ClusterWorker } from '@animal-store/cluster/worker';

/**
 * A parent that messages control, and workers that respond with their number
 * and state.
 */
if (cluster.isPrimary) {
  const report = (message: object) => void process.send?.(message);
  const line = (fields: object, message: string) =>
    report({ message, ...fields });
  const workers = new Workers({
    program: import.meta.filename,
    count: 2,
    shared: 'first',
    log: { info: line, error: line, fatal: line },
    output: process.stdout,
    drainTime: 10_000,
    onGiveUp: (reason) => report({ message: 'given up', reason }),
  });
  workers.listening.then(
    (address) => report({ message: 'listening', address }),
    () => report({ message: 'stopped before' }),
  );
  process.on('message', async (command: { share?: string; ask?: true }) => {
    if (command.share) return workers.share(command.share);
    if (command.ask)
      return report({ message: 'answer', ...(await workers.ask()) });
    report({ message: 'drained', isClean: await workers.drain() });
    process.disconnect?.();
  });
} else {
  const worker = ClusterWorker.ofThisProcess<string>();
  worker?.onState(() => undefined);
  worker?.onAsk(async () => ({ shared: worker.state?.shared }));
  const server = createServer((_request, response) => {
    response
      .setHeader('connection', 'close')
      .end(JSON.stringify({ number: worker?.number, ...worker?.state }));
  });
  process.once('SIGTERM', () => server.close(() => process.exit()));
  server.listen(0, '127.0.0.1', () =>
    worker?.ready(
      `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    ),
  );
}
