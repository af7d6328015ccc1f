import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../process.ts';
import type { TestPostgres } from './postgres.ts';
import { asUser, type Home, newHome, type Program, startProgram, untilUp } from './program.ts';

const binary = '/usr/sbin/haproxy';

/** Whether there is a HAProxy to run (Debian: haproxy). */
export const hasHaproxy = existsSync(binary);

/** One address for whichever of several servers is the primary: HAProxy as Patroni's documentation sets it up. */
export class TestHaproxy {
  readonly port: number;
  /** The file that takes what it says: when which server came and went. */
  readonly log: string;
  readonly #home: Home;
  readonly #program: Program;
  readonly #agents: Agent[];

  private constructor(port: number, home: Home, log: string, program: Program, agents: Agent[]) {
    this.port = port;
    this.log = log;
    this.#home = home;
    this.#program = program;
    this.#agents = agents;
  }

  static async start(servers: TestPostgres[]): Promise<TestHaproxy> {
    const [port, home] = [await freePort(), await newHome('nobody')];
    const [file, log] = [join(home.path, 'haproxy.cfg'), join(home.path, 'log')];
    const agents = await Promise.all(servers.map(startAgent));
    const lines = servers.map(
      ({ name, port }, at) => `  server ${name} 127.0.0.1:${port} check port ${agents[at]?.port}`,
    );
    writeFileSync(file, `${configuration(port)}${lines.join('\n')}\n`);
    const program = startProgram(asUser('nobody', [binary, '-db', '-f', file]), home.path, log);
    await untilUp(program, log, () => isOpen(port));
    return new TestHaproxy(port, home, log, program, agents);
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  async stop(): Promise<void> {
    await this.#program.stop('SIGKILL');
    for (const agent of this.#agents) agent.close();
    this.#home.remove();
  }
}

type Agent = Awaited<ReturnType<typeof startAgent>>;

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

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(() => resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

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
