import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { send } from '../http.ts';
import { eventually, freePort } from '../process.ts';
import type { TestPostgres } from './postgres.ts';
import { isOpen, startConfigured } from './program.ts';

const binary = '/usr/sbin/haproxy';

/** Whether HAProxy is installed (Debian: haproxy). */
export const hasHaproxy = existsSync(binary);

function startHaproxy(text: string, isUp: () => Promise<boolean>) {
  const command = (folder: string) => [
    binary,
    '-db',
    '-f',
    `${folder}/haproxy.cfg`,
  ];
  return startConfigured('nobody', { 'haproxy.cfg': text }, command, isUp);
}

/**
 * Starts HAProxy, as Patroni's documentation configures it, with one address
 * for the primary of several servers, the first. Returns when HAProxy has found
 * the others: until then it sends connections to them, and breaks these.
 */
export async function startFailover(servers: TestPostgres[]) {
  const port = await freePort();
  const agents = await Promise.all(servers.map(startAgent));
  const lines = servers.map(
    ({ name, port }, at) =>
      `  server ${name} 127.0.0.1:${port} check port ${agents[at]?.port}\n`,
  );
  const haproxy = await startHaproxy(configuration(port) + lines.join(''), () =>
    isOpen(port),
  );
  const standbys = servers
    .slice(1)
    .map(({ name }) => `Server primary/${name} is DOWN`);
  await eventually(async () =>
    standbys.every((line) => readFileSync(haproxy.log, 'utf8').includes(line)),
  );
  return {
    port,
    log: haproxy.log,
    url: (database = 'postgres') =>
      `postgres://postgres@127.0.0.1:${port}/${database}`,
    stop: async () => {
      await haproxy.stop();
      for (const agent of agents) agent.close();
    },
  };
}

export type TestProxy = Awaited<ReturnType<typeof startProxy>>;

/**
 * Starts HAProxy in front of two nodes, with the configuration of compose.yaml
 * except for the addresses.
 *
 * @param nodes the ports of `store-1` and `store-2`
 * @param checks the ports for operators of both
 */
export async function startProxy(nodes: [number, number], checks = nodes) {
  const port = await freePort();
  const addresses: Array<[published: string, local: string]> = [
    ['bind :4000\n', `bind 127.0.0.1:${port}\n`],
    ['store-1:4000 port 9464\n', `127.0.0.1:${nodes[0]} port ${checks[0]}\n`],
    ['store-2:4000 port 9464\n', `127.0.0.1:${nodes[1]} port ${checks[1]}\n`],
  ];
  let text = readFileSync('operations/proxy/haproxy.cfg', 'utf8');
  for (const [published, local] of addresses) {
    if (!text.includes(published))
      throw new Error(`haproxy.cfg has no ${published}`);
    text = text.replace(published, local);
  }
  const origin = `http://127.0.0.1:${port}`;
  const { log, stop } = await startHaproxy(
    text,
    async () => (await send(origin, { path: '/livez' })).status === 200,
  );
  /** Whether HAProxy has logged that a node is up, or down. */
  const hasLogged = (node: 'store-1' | 'store-2', state: 'UP' | 'DOWN') =>
    readFileSync(log, 'utf8').includes(`Server nodes/${node} is ${state}`);
  return { origin, hasLogged, stop };
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

/**
 * Answers 200 while this server is the primary, as Patroni's agents do: a TCP
 * check cannot tell a primary.
 */
async function startAgent(
  server: TestPostgres,
): Promise<{ port: number; close(): void }> {
  const agent = createServer(async (_, response) => {
    response.statusCode = (await isPrimary(server)) ? 200 : 503;
    response.setHeader('connection', 'close');
    response.end();
  });
  agent.listen(0, '127.0.0.1');
  await once(agent, 'listening');
  // A test that does not close the agent must not hang.
  agent.unref();
  return {
    port: (agent.address() as AddressInfo).port,
    close: () => void agent.close().closeAllConnections(),
  };
}

async function isPrimary(server: TestPostgres): Promise<boolean> {
  try {
    const [row] = await server.query<{ is_primary: boolean }>(
      'select not pg_is_in_recovery() as is_primary',
    );
    return row?.is_primary ?? false;
  } catch {
    return false;
  }
}
