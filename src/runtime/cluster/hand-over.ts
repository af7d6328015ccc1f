import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:cluster';

interface Message {
  cmd?: string;
  act?: string;
  seq?: number;
  ack?: number;
}

/**
 * Gives connections that were sent to a worker, but not accepted when it died, to another one. Node forgets them
 * (lib/internal/cluster/round_robin_handle.js waits for the worker's reply): they would stay open forever, and their
 * clients would wait. Here the reply is made up: not accepted. (With SCHED_NONE
 * there is nothing to hand over, but connections are not balanced: one of two workers took three of four.)
 *
 * @param hasOther whether another worker can take them; else they are closed
 */
export function handOver({ process: child }: Worker, hasOther: () => boolean): void {
  const pending = new Map<number, { close(): void }>();
  const send = child.send.bind(child) as (...parameters: unknown[]) => boolean;
  child.send = ((message: Message, handle?: unknown, ...others: unknown[]) => {
    if (message.act === 'newconn' && message.seq !== undefined) pending.set(message.seq, handle as { close(): void });
    return send(message, handle, ...others);
  }) as ChildProcess['send'];
  child.on('internalMessage', ({ ack }: Message) => ack !== undefined && pending.delete(ack));
  let isDisconnected = false;
  child.once('disconnect', () => {
    isDisconnected = true;
  });
  // `close` comes when everything that the worker sent has arrived.
  child.once('close', () => {
    // Node omits this while a handle is on its way (lib/internal/child_process.js, `_handleQueue`), and would still
    // pass connections to the dead worker.
    if (!isDisconnected) child.emit('disconnect');
    for (const [ack, handle] of [...pending]) {
      if (hasOther()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
      else handle.close();
    }
  });
}
