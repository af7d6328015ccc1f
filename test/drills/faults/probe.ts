import { createServer } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import { heapUsed } from '../../deep/support/heap.ts';

/**
 * A module for `--import` that serves HTTP on a Unix socket in the service's
 * process. GET returns the heap size (bytes) after a garbage collection. POST
 * sets the offset of the process's clock to the milliseconds in the path.
 * (libfaketime would change the monotonic clock, too.)
 */
let offset = 0;
const { now } = Date;
Date.now = () => now() + offset;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(
      target,
      args.length === 0 ? [target.now()] : args,
      newTarget,
    ),
});

const socket = process.env.DRILL_PROBE;
if (isMainThread && socket) {
  const server = createServer(({ method, url = '' }, response) => {
    if (method === 'POST') offset = Number(url.slice(1));
    response
      .setHeader('connection', 'close')
      .end(`${method === 'GET' ? heapUsed() : offset}`);
  });
  server.listen(socket).unref();
}
