import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createClient } from 'graphql-sse';
import { onCore } from '../../../bench/cores.ts';
import { Client, type Reply, serviceKey } from '../client.ts';
import type { Drill } from '../drill.ts';
import { runCommand } from '../service.ts';
import { refused, Tally } from '../tally.ts';
import { bulkPrefix, verify } from '../verify.ts';
import { deployEmbedded } from './deployment.ts';
import { residentBytes } from './memory.ts';
import { HealthProbe } from './overload.ts';
import { probe } from './probed.ts';

const worker = fileURLToPath(new URL('attacked.worker.ts', import.meta.url));

/**
 * What costs a service the most and its sender little, all at once and with a
 * key of scope `read`, from another process. The heap has 512 MB. Others send
 * 20 requests a second and subscribe; each of their requests must be served.
 */
export const attacked: Drill = {
  name: 'attacked (small heap, embedded store)',
  missing: async () => undefined,
  run: async (resources, seconds) => {
    const env = {
      GRAPHQL_FEDERATION: 'true',
      EVENT_LOOP_MAX_DELAY_MS: '100',
      LOG_LEVEL: 'error',
    };
    const probed = await probe(resources);
    const small = {
      ...probed.env,
      NODE_OPTIONS: `${probed.env.NODE_OPTIONS} --max-old-space-size=512`,
    };
    const { service, database, folder } = await deployEmbedded(resources, {
      ...env,
      ...small,
    });
    const issue = [
      'keys',
      'issue',
      '--scope',
      'read',
      '--name',
      'attacker',
      '--json',
    ];
    const { key } = JSON.parse(await runCommand(issue, { DATA_DIR: folder }));
    // A character has six bytes in JSON.
    const name = bulkPrefix.padEnd(1000, '\u0001');
    const creator = new Client(service.origin);
    for (let at = 0; at < 100; at += 1)
      await creator.post('/v1/pets', { name, categoryId: 1 });
    creator.close();

    const tally = new Tally();
    const [seen, faults]: [number[], string[]] = [[], []];
    const subscriber = createClient({
      url: `${service.origin}/graphql`,
      headers: () => ({
        authorization: `Bearer ${serviceKey}`,
        'last-event-id': `${seen.at(-1) ?? 100}`,
      }),
      retryAttempts: Number.POSITIVE_INFINITY,
      retry: () => pause(500),
    });
    resources.add(subscriber, (one) => one.dispose());
    subscriber.subscribe<{ petAdded: { id: string } }>(
      { query: 'subscription { petAdded { id } }' },
      {
        next: ({ data }) => void seen.push(Number(data?.petAdded.id)),
        error: (error) => faults.push(`the subscription has ended: ${error}`),
        complete: () => faults.push('the subscription is complete'),
      },
    );
    const stop = new AbortController();
    const loops = Array.from({ length: 5 }, (_, at) =>
      useStore(service.origin, tally, at, stop.signal),
    );
    await pause(seconds * 1000);

    const heapBefore = await probed.heap();
    const before = residentBytes(service.pid);
    let peak = before;
    const sampler = setInterval(() => {
      peak = Math.max(peak, residentBytes(service.pid));
    }, 50);
    const health = new HealthProbe(service);
    const outcomes = await attack({
      origin: service.origin,
      key,
      seconds: 15 * seconds,
    });
    const slowest = await health.stop();
    clearInterval(sampler);
    // V8 keeps part of the memory that it has had, so what counts is what
    // remains of the heap.
    const isShort = seconds < 8;
    await pause(isShort ? 0 : 60_000);
    const after = residentBytes(service.pid);
    const heapGrowth = (await probed.heap()) - heapBefore;
    stop.abort();
    await Promise.all(loops);
    const missed = () =>
      [...tally.acknowledged.keys()].filter((id) => !seen.includes(id)).length;
    for (let tries = 0; missed() > 0 && tries < 300; tries += 1)
      await pause(100);
    if (missed() > 0) faults.push(`the subscriber missed ${missed()} pets`);
    if (new Set(seen).size < seen.length)
      faults.push('the subscriber received a pet twice');
    if (!Number.isFinite(slowest))
      faults.push('a health response was neither 200 nor 503');
    // The database answers late while other programs have the processor, too.
    if (health.unready > health.asked / 2)
      faults.push('the service was not ready half of the time');
    if (heapGrowth > 0.1 * before)
      faults.push('more than 10% of the memory is still in use');
    const megabytes = [before, peak, after]
      .map((bytes) => Math.round(bytes / 1e6))
      .join(', ');
    return {
      tally,
      verdict: await verify(tally, database, [service]),
      allowed: [refused],
      note: `resident memory before, at most and after ${megabytes} MB, ${Math.round(heapGrowth / 1e6)} MB more heap in use; /livez and /readyz within ${Math.round(slowest)} ms, not ready ${health.unready} of ${health.asked} times; the attackers' answers: ${outcomes}`,
      faults,
    };
  },
};

/**
 * Creates, finds and lists over both APIs, four requests a second, until the
 * signal.
 */
async function useStore(
  origin: string,
  tally: Tally,
  number: number,
  signal: AbortSignal,
): Promise<void> {
  const client = new Client(origin);
  for (let turn = 0; !signal.aborted; turn += 1) {
    const name = `attacked ${number}-${turn}`;
    const sentAt = performance.now();
    const { id } =
      (await served(tally, () =>
        client.post('/v1/pets', { name, categoryId: 1 }),
      )) ?? {};
    if (id === undefined) continue;
    tally.acknowledge(id, {
      name,
      origin,
      sentAt,
      answeredAt: performance.now(),
    });
    const query = `{ pet(id: ${id}) { name } pets(limit: 20) { id } }`;
    const reads = [
      () => client.get(`/v1/pets/${id}`),
      () => client.get(`/v1/pets?limit=20&after=${id - 1}`),
      () => client.post('/graphql', { query }),
    ];
    for (const read of reads) {
      await pause(250);
      const found = JSON.stringify(await served(tally, read));
      if (!found?.includes(`"${name}"`))
        tally.stale.push(`${name} found as: ${found}`);
    }
  }
  client.close();
}

/**
 * Sends a request, and again while the answer is 503 with `Retry-After`.
 * @returns its body
 */
async function served(tally: Tally, send: () => Promise<Reply>) {
  for (let tries = 0; tries < 30; tries += 1) {
    tally.requests += 1;
    const reply = await send();
    const isAnswer = reply.kind === 'answer';
    if (isAnswer && reply.status < 300) return JSON.parse(reply.text);
    const isRefused = isAnswer && reply.status === 503 && reply.retryAfter;
    tally.fail(
      isRefused
        ? refused
        : isAnswer
          ? `${reply.status} ${reply.text}`
          : reply.kind,
    );
    if (!isRefused) return undefined;
    await pause(1000);
  }
  tally.hung += 1;
}

/**
 * Runs the attacks in a separate process. @returns the number of each answer
 */
async function attack(job: {
  origin: string;
  key: string;
  seconds: number;
}): Promise<string> {
  const [command, args] = onCore('load', process.execPath, [worker]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(job));
  return text(child.stdout);
}
