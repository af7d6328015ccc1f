import { createServer } from 'node:http';
import { isMainThread } from 'node:worker_threads';
import { heapUsed } from '../../test/support/heap.ts';

/**
 * Is loaded into the process of a service (`--import`), and answers on a Unix socket of its own: GET for the heap after a
 * collection, in bytes; POST sets the process's clock, by as many milliseconds as the path says. (libfaketime would set
 * the monotonic clock as well.)
 */
let jump = 0;
const { now } = Date;
Date.now = () => now() + jump;
globalThis.Date = new Proxy(Date, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [target.now()] : given, newTarget),
});

const socket = process.env.DRILL_PROBE;
if (isMainThread && socket) {
  const server = createServer(({ method, url = '' }, response) => {
    if (method === 'POST') jump = Number(url.slice(1));
    response.setHeader('connection', 'close').end(`${method === 'GET' ? heapUsed() : jump}`);
  });
  server.listen(socket).unref();
}
