import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { send } from '../http.ts';
import { freePort } from '../process.ts';
import type { TestPostgres } from './postgres.ts';
import { isOpen, startConfigured } from './program.ts';

const binary = '/usr/sbin/haproxy';

/** Whether there is a HAProxy to run (Debian: haproxy). */
export const hasHaproxy = existsSync(binary);

function startHaproxy(text: string, isUp: () => Promise<boolean>) {
  const command = (folder: string) => [binary, '-db', '-f', `${folder}/haproxy.cfg`];
  return startConfigured('nobody', { 'haproxy.cfg': text }, command, isUp);
}

/** One address for whichever of several servers is the primary: HAProxy as Patroni's documentation sets it up. */
export async function startFailover(servers: TestPostgres[]) {
  const port = await freePort();
  const agents = await Promise.all(servers.map(startAgent));
  const lines = servers.map(
    ({ name, port }, at) => `  server ${name} 127.0.0.1:${port} check port ${agents[at]?.port}\n`,
  );
  const haproxy = await startHaproxy(configuration(port) + lines.join(''), () => isOpen(port));
  return {
    port,
    log: haproxy.log,
    url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`,
    stop: async () => {
      await haproxy.stop();
      for (const agent of agents) agent.close();
    },
  };
}

export type TestProxy = Awaited<ReturnType<typeof startProxy>>;

/**
 * HAProxy in front of two nodes, with the file that compose.yaml gives it: only the addresses are others.
 *
 * @param nodes the ports of `store-1` and `store-2`
 * @param checks their ports for operators
 */
export async function startProxy(nodes: [number, number], checks = nodes) {
  const port = await freePort();
  const addresses: Array<[there: string, here: string]> = [
    ['bind :4000\n', `bind 127.0.0.1:${port}\n`],
    ['store-1:4000 port 9464\n', `127.0.0.1:${nodes[0]} port ${checks[0]}\n`],
    ['store-2:4000 port 9464\n', `127.0.0.1:${nodes[1]} port ${checks[1]}\n`],
  ];
  let text = readFileSync('operations/proxy/haproxy.cfg', 'utf8');
  for (const [there, here] of addresses) {
    if (!text.includes(there)) throw new Error(`haproxy.cfg has no ${there}`);
    text = text.replace(there, here);
  }
  const origin = `http://127.0.0.1:${port}`;
  const { log, stop } = await startHaproxy(text, async () => (await send(origin, { path: '/livez' })).status === 200);
  /** Whether it has noticed that a node came, or went. */
  const noticed = (node: 'store-1' | 'store-2', what: 'UP' | 'DOWN') =>
    readFileSync(log, 'utf8').includes(`Server nodes/${node} is ${what}`);
  return { origin, noticed, stop };
}

const configuration = (port: number) => `global
  log stdout format raw local0
defaults
  mode tcp
  log global
  retries 2
  timeout connect 4s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen primary
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
`;

/** Answers 200 as long as this server is the primary, as Patroni does beside each PostgreSQL: TCP alone cannot tell. */
async function startAgent(server: TestPostgres): Promise<{ port: number; close(): void }> {
  const agent = createServer(async (_, response) => {
    response.statusCode = (await isPrimary(server)) ? 200 : 503;
    response.setHeader('connection', 'close');
    response.end();
  });
  agent.listen(0, '127.0.0.1');
  await once(agent, 'listening');
  // A test that forgets it must not hang.
  agent.unref();
  return { port: (agent.address() as AddressInfo).port, close: () => void agent.close().closeAllConnections() };
}

async function isPrimary(server: TestPostgres): Promise<boolean> {
  try {
    const [row] = await server.query<{ is_primary: boolean }>('select not pg_is_in_recovery() as is_primary');
    return row?.is_primary ?? false;
  } catch {
    return false;
  }
}
