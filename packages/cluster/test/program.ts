import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { ClusterWorker } from '../src/worker.ts';
import { Workers } from '../src/workers.ts';

/** A parent that is told what to do by messages, and workers that answer with what they know. */
if (cluster.isPrimary) {
  const tell = (message: object) => void process.send?.(message);
  const line = (fields: object, message: string) => tell({ message, ...fields });
  const workers = new Workers({
    program: import.meta.filename,
    count: 2,
    shared: 'first',
    log: { info: line, error: line, fatal: line },
    output: process.stdout,
    drainTime: 10_000,
    onGiveUp: (reason) => tell({ message: 'given up', reason }),
  });
  void workers.listening.then((address) => tell({ message: 'listening', address }));
  process.on('message', async (wanted: { share?: string }) => {
    if (wanted.share) return workers.share(wanted.share);
    tell({ message: 'drained', isClean: await workers.drain() });
    process.disconnect?.();
  });
} else {
  const worker = ClusterWorker.ofThisProcess<string>();
  worker?.onState(() => undefined);
  const server = createServer((_request, response) => {
    response.setHeader('connection', 'close').end(JSON.stringify({ number: worker?.number, ...worker?.state }));
  });
  process.once('SIGTERM', () => server.close(() => process.exit()));
  server.listen(0, '127.0.0.1', () => worker?.ready(`http://127.0.0.1:${(server.address() as { port: number }).port}`));
}
