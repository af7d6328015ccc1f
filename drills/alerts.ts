import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../test/support/process.ts';
import { hasPostgres, TestPostgres } from '../test/support/servers/postgres.ts';
import { hasPrometheus, startPrometheus, type TestPrometheus } from '../test/support/servers/prometheus.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createShop, lacking, startService } from './service.ts';
import { refused, unknown } from './tally.ts';
import { verify } from './verify.ts';

const away = 'AnimalStoreDatabaseAway';

/** The database goes, and the alert fires; it comes back, and the alert ends. A real Prometheus, with the rules served. */
export const alerts: Drill = {
  name: 'alerts (Prometheus, database stopped)',
  missing: async () => {
    if (!hasPostgres) return 'PostgreSQL';
    return hasPrometheus ? lacking('OPERATIONS_PORT') : 'Prometheus';
  },
  run: async (parts, seconds) => {
    const server = parts.add(await TestPostgres.start(), (one) => one.remove());
    const url = server.url(await createShop(server));
    const port = await freePort();
    const service = await startService(parts, { DATABASE_URL: url, OPERATIONS_PORT: `${port}` });
    const options = { targets: [`127.0.0.1:${port}`], rules: impatient() };
    const prometheus = parts.add(await startPrometheus(options), (one) => one.stop());
    const isFiring = async () => (await firing(prometheus)).includes(away);
    const load = new Load({ writers: [service], readers: [service], clients: 4 });

    await until(async () => (await prometheus.query('animal_store_database_up'))[0] === 1);
    // Before its first scrape Prometheus knew no node at all.
    await until(async () => (await firing(prometheus)).length === 0);
    await pause(seconds * 200);
    const before = await firing(prometheus);
    await server.stop('immediate');
    const stoppedAt = performance.now();
    await until(isFiring);
    const firedAt = performance.now();
    await server.start();
    const startedAt = performance.now();
    await until(async () => !(await isFiring()));
    const resolvedAt = performance.now();

    const tally = await load.stop();
    return {
      tally,
      verdict: await verify(tally, url, [service]),
      allowed: [refused, unknown],
      recovery: `${Math.round(resolvedAt - startedAt)} ms`,
      note: `${away} fired after ${Math.round(firedAt - stoppedAt)} ms, and ended so long after the database's return`,
      faults: before.map((name) => `${name} fired while all was well`),
    };
  },
};

/** The rules as they are served, but that they wait for a second and not for minutes. */
function impatient(): string {
  return readFileSync('operations/prometheus/alerts.yaml', 'utf8').replaceAll(/^( +for:) .*$/gm, '$1 1s');
}

async function firing(prometheus: TestPrometheus): Promise<Array<string | undefined>> {
  const alerts = await prometheus.alerts();
  return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
}

/** @throws Error when it is not so within 30 seconds */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('What was waited for has not come in 30 s.');
    await pause(50);
  }
}
