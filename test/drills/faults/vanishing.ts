import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { Load } from '../load.ts';
import { verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres } from './deployment.ts';

/**
 * During a mixed load, clients disconnect: before their request is complete,
 * while it is executed, or before the response.
 */
export const vanishing: Drill = {
  name: 'vanishing clients',
  missing: lacksPostgres,
  run: async (resources, seconds) => {
    const { service, database } = await deployOnPostgres(resources);
    const load = new Load({ writers: [service], readers: [service] });
    const until = performance.now() + seconds * 1000;
    let vanished = 0;
    while (performance.now() < until) {
      await Promise.all(
        Array.from({ length: 20 }, () =>
          vanish(service.origin, `vanished ${vanished++}`),
        ),
      );
    }
    // The service must close the connections of vanished clients.
    const open = () => connectionsTo(service.origin);
    // The connection that checked whether the service is ready may stay open
    // for a few seconds.
    for (let tries = 0; open() > load.clients && tries < 500; tries += 1)
      await pause(20);
    const remaining = open() - load.clients;
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [],
      note: `${vanished} clients vanished`,
      faults: remaining > 0 ? [`${remaining} connections are still open`] : [],
    };
  },
};

function vanish(origin: string, name: string): Promise<void> {
  const body = JSON.stringify({ name, categoryId: 1 });
  const head = `POST /v1/pets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${serviceKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const request = head + body;
  const sent = request.slice(
    0,
    Math.random() < 0.3
      ? Math.ceil(Math.random() * request.length)
      : request.length,
  );
  return new Promise((done) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => {
      socket.write(sent);
      setTimeout(() => socket.resetAndDestroy(), 10 * Math.random());
    });
    socket.on('error', () => undefined);
    socket.on('close', () => done());
  });
}

/**
 * Number of the service's established client connections (proc(5),
 * /proc/net/tcp).
 */
function connectionsTo(origin: string): number {
  const port = Number(new URL(origin).port)
    .toString(16)
    .toUpperCase()
    .padStart(4, '0');
  const [established, lines] = [
    '01',
    readFileSync('/proc/net/tcp', 'utf8').split('\n'),
  ];
  return lines.filter((line) => {
    const [, local, , state] = line.trim().split(/ +/);
    return local?.endsWith(`:${port}`) && state === established;
  }).length;
}
