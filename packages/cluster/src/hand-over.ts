import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:cluster';

/**
 * Passes connections that a worker had not accepted when it died to another
 * worker. Node would leave them open forever:
 * lib/internal/cluster/round_robin_handle.js waits for the worker's reply. This
 * code emits the missing reply, "not accepted". Neither alternative balances:
 * with SCHED_NONE one of two workers took three of four connections, with
 * `reusePort` up to 26 of 40, and each restart reset some 80 of 6,000.
 *
 * @param hasOther whether another worker can accept them; otherwise they are
 *   closed
 */
export function handOver({ process: child }: Worker, hasOther: () => boolean) {
  const pending = new Map<number, { close(): void }>();
  const send = child.send.bind(child) as (...parameters: unknown[]) => boolean;
  child.send = ((
    message: { act?: string; seq?: number },
    handle?: unknown,
    ...others: unknown[]
  ) => {
    if (message.act === 'newconn' && message.seq !== undefined)
      pending.set(message.seq, handle as { close(): void });
    return send(message, handle, ...others);
  }) as ChildProcess['send'];
  child.on('internalMessage', ({ ack }: { ack?: number }) => {
    if (ack !== undefined) pending.delete(ack);
  });
  // `close` follows the last message of the worker.
  child.once('close', () => {
    // Node omits `disconnect` while a handle is in transit
    // (lib/internal/child_process.js, `_handleQueue`), and would keep sending
    // connections to the dead worker. Node listens once, so a second
    // `disconnect` does nothing.
    child.emit('disconnect');
    for (const [ack, handle] of [...pending]) {
      const refusal = { cmd: 'NODE_CLUSTER', ack, accepted: false };
      if (hasOther()) child.emit('internalMessage', refusal);
      else handle.close();
    }
  });
}
