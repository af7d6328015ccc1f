import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:cluster';

interface Message {
  cmd?: string;
  act?: string;
  seq?: number;
  ack?: number;
}

/**
 * Gives the connections that a worker was handed, but had not taken when it died, to another one. Node forgets them
 * (lib/internal/cluster/round_robin_handle.js waits for the worker's reply): they would stay open for ever, and their
 * clients would wait. Here the reply is made up: not accepted.
 *
 * @param hasOther whether there is a worker to give them to; else they are closed
 */
export function handOver(worker: Worker, hasOther: () => boolean): void {
  const child: ChildProcess = worker.process;
  const pending = new Map<number, { close(): void }>();
  const send = child.send.bind(child) as (...parameters: unknown[]) => boolean;
  child.send = (message: Message, handle?: unknown, ...others: unknown[]) => {
    if (message.act === 'newconn' && message.seq !== undefined) pending.set(message.seq, handle as { close(): void });
    return send(message, handle, ...others);
  };
  child.on('internalMessage', ({ ack }: Message) => ack !== undefined && pending.delete(ack));
  let isDisconnected = false;
  child.once('disconnect', () => {
    isDisconnected = true;
  });
  // Whatever the worker had sent has arrived by then.
  child.once('close', () => {
    // Node leaves this out while a handle is on its way (lib/internal/child_process.js, `_handleQueue`), and would
    // still pass connections to the dead worker.
    if (!isDisconnected) child.emit('disconnect');
    for (const [ack, handle] of [...pending]) {
      if (hasOther()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
      else handle.close();
    }
  });
}
