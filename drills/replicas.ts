import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, lacking, type Service, startService } from './service.ts';
import { sharesOf } from './shares.ts';
import { refused } from './tally.ts';
import { verify } from './verify.ts';

/** Reads go to two replicas, which lag, die, come back, and are promoted by mistake: nobody may read less than he wrote. */
export const replicas: Drill = {
  name: 'replicas (two, streaming)',
  missing: async () => (hasPostgres ? lacking('DATABASE_READ_URLS') : 'PostgreSQL'),
  run: async (parts, seconds) => {
    const primary = parts.add(await TestPostgres.start(), (one) => one.remove());
    const shop = await createShop(primary);
    const a = parts.add(await primary.replica('a'), (one) => one.remove());
    const b = parts.add(await primary.replica('b'), (one) => one.remove());
    const env = { DATABASE_URL: primary.url(shop), DATABASE_READ_URLS: [a.url(shop), b.url(shop)].join() };
    const services: Service[] = [];
    for (let node = 0; node < 2; node++) services.push(await startService(parts, env));
    const load = new Load({ writers: services, readers: services, isShared: false });
    const phases: Array<[name: string, begin: () => Promise<unknown>]> = [
      ['balance', async () => undefined],
      ['lag of a', () => a.set({ recovery_min_apply_delay: '700ms' })],
      ['loss of b', async () => [await a.set({ recovery_min_apply_delay: 0 }), await b.kill()]],
      ['return of b', () => b.start()],
      ['promotion of b', () => b.promote()],
    ];
    const notes: string[] = [];
    const faults: string[] = [];
    for (const [name, begin] of phases) {
      await begin();
      const before = services.map((service) => service.lines().length);
      await pause((seconds * 1000) / phases.length);
      const mustServe = { balance: [a, b], 'return of b': [b] }[name] ?? [];
      const look = () => {
        const lines = services.flatMap((service, at) => service.lines().slice(before[at]));
        return sharesOf(nodesOf(lines, [a, b]));
      };
      const serves = (node: string) => look().some(([served]) => served === node);
      // A node that has failed is not asked for ten seconds at most; and in a short phase a first read may be late.
      for (let more = 0; more < 100 && !mustServe.every(({ name }) => serves(name)); more += 1) await pause(100);
      const shares = look();
      notes.push(`${name}: ${shares.map(([node, share]) => `${node} ${share}%`).join(' ')}`);
      for (const { name: node } of mustServe) {
        if (!shares.some(([served]) => served === node)) faults.push(`${node} served nothing at: ${name}`);
      }
    }
    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, primary.url(shop), services),
      allowed: [refused],
      note: notes.join('; '),
      faults,
    };
  },
};

/** Which nodes served, by the log's `node`, which says an address. */
function nodesOf(lines: Array<Record<string, unknown>>, servers: TestPostgres[]): string[] {
  const nameOf = (node: string) => servers.find(({ port }) => node.endsWith(`:${port}`))?.name ?? node;
  return lines.flatMap(({ node }) => (node === undefined ? [] : [nameOf(`${node}`)]));
}
