import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import {
  createDatabase,
  missingVariables,
  type Service,
  startService,
} from './service.ts';
import { sharesOf } from './shares.ts';
import { refused } from './tally.ts';
import { verify } from './verify.ts';

/**
 * Reads go to two replicas, which lag, are killed, restart, and are promoted by
 * mistake. Every client must read its own writes.
 */
export const replicas: Drill = {
  name: 'replicas (two, streaming)',
  missing: async () =>
    hasPostgres ? missingVariables('DATABASE_READ_URLS') : 'PostgreSQL',
  run: async (resources, seconds) => {
    const primary = resources.add(await TestPostgres.start(), (one) =>
      one.remove(),
    );
    const database = await createDatabase(primary);
    const a = resources.add(await primary.replica('a'), (one) => one.remove());
    const b = resources.add(await primary.replica('b'), (one) => one.remove());
    const env = {
      DATABASE_URL: primary.url(database),
      DATABASE_READ_URLS: [a.url(database), b.url(database)].join(),
    };
    const services: Service[] = [];
    for (let node = 0; node < 2; node++)
      services.push(await startService(resources, env));
    const load = new Load({
      writers: services,
      readers: services,
      isConsistent: false,
    });
    const phases: Array<[name: string, begin: () => Promise<unknown>]> = [
      ['balance', async () => undefined],
      ['lag of a', () => a.set({ recovery_min_apply_delay: '700ms' })],
      [
        'loss of b',
        async () => [
          await a.set({ recovery_min_apply_delay: 0 }),
          await b.kill(),
        ],
      ],
      ['return of b', () => b.start()],
      ['promotion of b', () => b.promote()],
    ];
    const notes: string[] = [];
    const faults: string[] = [];
    for (const [name, begin] of phases) {
      await begin();
      const logged = services.map((service) => service.lines().length);
      await pause((seconds * 1000) / phases.length);
      const mustServe = { balance: [a, b], 'return of b': [b] }[name] ?? [];
      const sample = () => {
        const lines = services.flatMap((service, at) =>
          service.lines().slice(logged[at]),
        );
        return sharesOf(nodesOf(lines, [a, b]));
      };
      const serves = (node: string) =>
        sample().some(([served]) => served === node);
      // The service avoids a failed node for up to ten seconds. In a short
      // phase the first read may be late.
      for (
        let more = 0;
        more < 100 && !mustServe.every(({ name }) => serves(name));
        more += 1
      )
        await pause(100);
      const shares = sample();
      notes.push(
        `${name}: ${shares.map(([node, share]) => `${node} ${share}%`).join(' ')}`,
      );
      for (const { name: node } of mustServe) {
        if (!shares.some(([served]) => served === node))
          faults.push(`${node} served nothing at: ${name}`);
      }
    }
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, primary.url(database), services),
      allowed: [refused],
      note: notes.join('; '),
      faults,
    };
  },
};

/** The servers that answered reads: the log's `node` is an address. */
function nodesOf(
  lines: Array<Record<string, unknown>>,
  servers: TestPostgres[],
): string[] {
  const nameOf = (node: string) =>
    servers.find(({ port }) => node.endsWith(`:${port}`))?.name ?? node;
  return lines.flatMap(({ node }) =>
    node === undefined ? [] : [nameOf(`${node}`)],
  );
}
