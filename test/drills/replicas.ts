import { setTimeout as pause } from 'node:timers/promises';
import { send } from '../support/http.ts';
import { type Series, seriesIn } from '../support/metrics.ts';
import { freePort } from '../support/process.ts';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import {
  createDatabase,
  missingVariables,
  type Service,
  startService,
} from './service.ts';
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
    const operations: string[] = [];
    for (let node = 0; node < 2; node++) {
      const port = await freePort();
      operations.push(`http://127.0.0.1:${port}`);
      services.push(
        await startService(resources, { ...env, OPERATIONS_PORT: `${port}` }),
      );
    }
    /** The reads of each server until now. */
    const readsOf = async (): Promise<Reads> => {
      const counts = await Promise.all(operations.map(countedAt));
      return { a: sum(counts, a), b: sum(counts, b), primary: sum(counts) };
    };
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
      const before = await readsOf();
      await pause((seconds * 1000) / phases.length);
      const mustServe = { balance: [a, b], 'return of b': [b] }[name] ?? [];
      const sample = async () => {
        const now = await readsOf();
        return Object.entries(now).map(([node, reads]) => ({
          node,
          reads: reads - (before[node] ?? 0),
        }));
      };
      let shares = await sample();
      const isServing = ({ name: node }: TestPostgres) =>
        shares.some((share) => share.node === node && share.reads > 0);
      // The service avoids a failed node for up to ten seconds. In a short
      // phase the first read may be late.
      for (let more = 0; more < 100 && !mustServe.every(isServing); more += 1) {
        await pause(100);
        shares = await sample();
      }
      const total = shares.reduce((all, { reads }) => all + reads, 0);
      notes.push(
        `${name}: ${shares.map(({ node, reads }) => `${node} ${Math.round((100 * reads) / total)}%`).join(' ')}`,
      );
      for (const node of mustServe) {
        if (!isServing(node))
          faults.push(`${node.name} served nothing at: ${name}`);
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

type Reads = Record<string, number>;

const countedAt = async (origin: string): Promise<Series> =>
  seriesIn((await send(origin, { path: '/metrics' })).text);

/** Reads of a server; of the primary without one. */
function sum(counts: Series[], server?: TestPostgres): number {
  const node = server ? `127.0.0.1:${server.port}` : 'primary';
  const name = `animal_store_read_node_reads_total{node="${node}"}`;
  return counts.reduce((all, series) => all + (series.get(name) ?? 0), 0);
}
