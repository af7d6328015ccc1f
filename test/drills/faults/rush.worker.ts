import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Connection } from '../../../bench/connection.ts';
import type { Rush } from './rush.ts';

/**
 * The process of a rush: reads it from standard input, and writes the number of
 * each outcome to standard output.
 */

const { port, requests, connections, perSecond, seconds }: Rush = JSON.parse(
  await text(process.stdin),
);
const messages = requests.map((request) => Buffer.from(request));
const idle = Array.from({ length: connections }, () => new Connection(port));
const outcomes: Record<string, number> = {};
const began = performance.now();
let sent = 0;
let late = 0;

// Clients that come on their own: the number of requests does not depend on how
// fast the service answers.
for (let now = began; now < began + seconds * 1000; now = performance.now()) {
  for (const due = ((now - began) / 1000) * perSecond; sent < due; sent += 1) {
    const connection = idle.shift();
    if (connection)
      void send(connection, messages[sent % messages.length] as Buffer);
    else late += 1;
  }
  await pause(5);
}
process.stdout.write(JSON.stringify({ ...outcomes, late }), () =>
  process.exit(),
);

async function send(connection: Connection, message: Buffer): Promise<void> {
  const outcome = await connection.request(message);
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  idle.push(connection);
}
