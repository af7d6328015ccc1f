import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { startFailure } from '../../start-failure.ts';
import { type Finding, failure, look, ok, type Result, warning } from './finding.ts';

/** A port that the service opens. */
export interface Listening {
  port: number;
  host: string;
  /** How the names of its variables begin; empty for the service's own. */
  variables: '' | 'OPERATIONS_';
}

/** How long (ms) whoever holds a port may take to answer. */
const patience = 2000;

/** Whether it can be opened, or who has it. It is never opened: a service that starts meanwhile would find it taken. */
export function lookAtPort(listening: Listening): Promise<Finding> {
  const { port, variables } = listening;
  const name = variables ? `operations port ${port}` : `port ${port}`;
  return look(name, () => portOf(listening), `choose another ${variables}PORT or ${variables}HOST`);
}

async function portOf(listening: Listening): Promise<Result> {
  const { port, host, variables } = listening;
  await assertAddress(host).catch((error) => {
    throw new Error(startFailure(Object.assign(error, { variables })));
  });
  if (await isTaken(listening)) return variables ? holderOfOperations(listening) : holder(listening);
  if (port < firstFreePort() && process.getuid?.() !== 0) {
    const remedy = `choose a ${variables}PORT from ${firstFreePort()} on, or give the right (CAP_NET_BIND_SERVICE)`;
    return warning('free, but only for root', remedy);
  }
  return ok(`free on ${host}`);
}

/** @throws Error when it is none of this machine's */
function assertAddress(host: string): Promise<void> {
  return new Promise((done, refuse) => {
    const server = createServer();
    server.once('error', (error) => refuse(Object.assign(error, { address: host })));
    // Any port of it.
    server.listen(0, host, () => server.close(() => done()));
  });
}

function isTaken({ port, host }: Listening): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ port, host: reachable(host), timeout: patience });
    const end = (taken: boolean) => {
      socket.destroy();
      done(taken);
    };
    socket.once('connect', () => end(true));
    // Whoever does not answer is there nevertheless.
    socket.once('timeout', () => end(true));
    socket.once('error', () => end(false));
  });
}

async function holder(listening: Listening): Promise<Result> {
  const alive = await answer(listening, '/livez');
  if (alive?.body !== '{"status":"ok"}') {
    const remedy = 'end that (`ss -ltnp` says what it is), or choose another PORT';
    return failure('held by something that is no animal store', remedy);
  }
  const ready = await answer(listening, '/readyz');
  if (ready?.status === 200) return ok('held by an animal store, which is ready');
  const why = ready ? messageIn(ready.body) : 'it does not say why';
  return warning(`held by an animal store that is not ready: ${why}`, 'see its log, and docs/runbook.md');
}

async function holderOfOperations(listening: Listening): Promise<Result> {
  const log = await answer(listening, '/log');
  if (log?.status === 200 && log.body.includes('"level"')) return ok('held by an animal store');
  return failure(
    'held by something that is no animal store',
    'end that (`ss -ltnp`), or choose another OPERATIONS_PORT',
  );
}

/** @returns at most the beginning: whoever answers may be anything */
async function answer({ port, host }: Listening, path: string): Promise<{ status: number; body: string } | undefined> {
  const name = reachable(host);
  try {
    const response = await fetch(`http://${name.includes(':') ? `[${name}]` : name}:${port}${path}`, {
      signal: AbortSignal.timeout(patience),
      redirect: 'manual',
    });
    let body = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      body += decoder.decode(chunk, { stream: true });
      if (body.length > 4096) break;
    }
    return { status: response.status, body };
  } catch {
    return undefined;
  }
}

function messageIn(body: string): string {
  try {
    return `${(JSON.parse(body) as { message?: unknown }).message}`;
  } catch {
    return body.slice(0, 100);
  }
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function firstFreePort(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'));
  } catch {
    return 1024;
  }
}
