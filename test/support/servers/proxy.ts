import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { send } from '../http.ts';
import { freePort } from '../process.ts';
import { asUser, type Home, newHome, type Program, startProgram, untilUp } from './program.ts';

/** HAProxy in front of two nodes, with the file that compose.yaml gives it: only the addresses are others. */
export class TestProxy {
  readonly origin: string;
  readonly #log: string;
  readonly #home: Home;
  readonly #program: Program;

  private constructor(origin: string, log: string, home: Home, program: Program) {
    this.origin = origin;
    this.#log = log;
    this.#home = home;
    this.#program = program;
  }

  /** @param nodes the ports of `store-1` and `store-2` @param checks their ports for operators */
  static async start(nodes: [number, number], checks = nodes): Promise<TestProxy> {
    const [port, home] = [await freePort(), await newHome('nobody')];
    const [file, log] = [join(home.path, 'haproxy.cfg'), join(home.path, 'log')];
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
    writeFileSync(file, text);
    const program = startProgram(asUser('nobody', ['/usr/sbin/haproxy', '-db', '-f', file]), home.path, log);
    const origin = `http://127.0.0.1:${port}`;
    await untilUp(program, log, async () => (await send(origin, { path: '/livez' })).status === 200);
    return new TestProxy(origin, log, home, program);
  }

  /** Whether it has noticed that a node came, or went. */
  noticed(node: 'store-1' | 'store-2', what: 'UP' | 'DOWN'): boolean {
    return readFileSync(this.#log, 'utf8').includes(`Server nodes/${node} is ${what}`);
  }

  async stop(): Promise<void> {
    await this.#program.stop('SIGKILL');
    this.#home.remove();
  }
}
