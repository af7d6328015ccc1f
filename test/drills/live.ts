import { createClient } from 'graphql-sse';
import { eventually } from '../support/process.ts';
import { TcpProxy } from '../support/servers/tcp-proxy.ts';
import { Client, serviceKey } from './client.ts';
import type { Drill } from './drill.ts';
import { deployOnPostgres, lacksPostgres } from './faults/deployment.ts';
import { Tally } from './tally.ts';
import { verify } from './verify.ts';

const creations = 10_000;
const writers = 16;

/**
 * A subscriber with graphql-sse's client loses its connection repeatedly. It
 * must miss no pet.
 */
export const live: Drill = {
  name: 'live list',
  rounds: 10,
  missing: async () => lacksPostgres(),
  run: async (resources, _seconds, rounds) => {
    const deployment = await deployOnPostgres(resources, {});
    const proxy = new TcpProxy(new URL(deployment.service.origin));
    await proxy.open();
    resources.add(proxy, () => proxy.cut());
    const ids: number[] = [];
    const client = resources.add(
      createSubscriber(new URL(proxy.url).origin, () => ids.at(-1)),
      (one) => one.dispose(),
    );
    const faults: string[] = [];
    client.subscribe<{ petAdded: { id: string } }>(
      { query: 'subscription { petAdded(after: "0") { id name } }' },
      {
        next: ({ data, errors }) =>
          data
            ? ids.push(Number(data.petAdded.id))
            : faults.push(JSON.stringify(errors)),
        error: (error) => faults.push(`the subscription has ended: ${error}`),
        complete: () => faults.push('the subscription is complete'),
      },
    );
    const tally = new Tally();
    const began = performance.now();
    const loops = Array.from({ length: writers }, (_, at) =>
      create(deployment.service.origin, tally, at),
    );
    for (let round = 1; round <= rounds; round += 1) {
      await eventually(
        async () =>
          ids.length > (round * creations) / (rounds + 1) || faults.length > 0,
      );
      proxy.cut();
      await proxy.open();
    }
    await Promise.all(loops);
    const created = performance.now();
    await eventually(async () => ids.length >= creations || faults.length > 0);
    const received = performance.now();
    const missed = [...tally.acknowledged.keys()].filter(
      (id) => !ids.includes(id),
    ).length;
    if (missed > 0) faults.push(`${missed} pets were missed`);
    if (ids.some((id, at) => id <= (ids[at - 1] ?? 0)))
      faults.push('a pet was repeated, or out of order');
    const perSecond = Math.round((1000 * creations) / (created - began));
    return {
      rounds,
      tally,
      verdict: await verify(tally, deployment.database, [deployment.service]),
      allowed: [],
      faults,
      note: `${ids.length} pets received, ${perSecond} created per second; the last one received ${Math.round(received - created)} ms after the last creation`,
    };
  },
};

function createSubscriber(origin: string, lastId: () => number | undefined) {
  return createClient({
    url: `${origin}/graphql`,
    headers: () => {
      const id = lastId();
      return {
        authorization: `Bearer ${serviceKey}`,
        ...(id !== undefined && { 'last-event-id': `${id}` }),
      };
    },
    retryAttempts: Number.POSITIVE_INFINITY,
    retry: async () => undefined,
  });
}

async function create(
  origin: string,
  tally: Tally,
  writer: number,
): Promise<void> {
  const client = new Client(origin);
  for (let turn = 0; turn < creations / writers; turn += 1) {
    const name = `live ${writer}-${turn}`;
    const sentAt = performance.now();
    tally.requests += 1;
    const reply = await client.post('/v1/pets', { name, categoryId: 1 });
    if (reply.kind !== 'answer' || reply.status !== 201) tally.fail(reply.kind);
    else
      tally.acknowledge(JSON.parse(reply.text).id, {
        name,
        origin,
        sentAt,
        answeredAt: performance.now(),
      });
  }
  client.close();
}
