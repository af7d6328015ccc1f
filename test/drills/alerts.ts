import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../support/process.ts';
import { hasPostgres, TestPostgres } from '../support/servers/postgres.ts';
import {
  hasPrometheus,
  startPrometheus,
  type TestPrometheus,
} from '../support/servers/prometheus.ts';
import type { Drill } from './drill.ts';
import { Load } from './load.ts';
import { createDatabase, missingVariables, startService } from './service.ts';
import { refused, unknown } from './tally.ts';
import { verify } from './verify.ts';

const alertName = 'AnimalStoreDatabaseAway';

/**
 * Stops and starts the database under a real Prometheus with the published
 * rules. The alert must fire, then resolve.
 */
export const alerts: Drill = {
  name: 'alerts (Prometheus, database stopped)',
  missing: async () => {
    if (!hasPostgres) return 'PostgreSQL';
    return hasPrometheus ? missingVariables('OPERATIONS_PORT') : 'Prometheus';
  },
  run: async (resources, seconds) => {
    const server = resources.add(await TestPostgres.start(), (one) =>
      one.remove(),
    );
    const url = server.url(await createDatabase(server));
    const port = await freePort();
    const service = await startService(resources, {
      DATABASE_URL: url,
      OPERATIONS_PORT: `${port}`,
    });
    const options = {
      targets: [`127.0.0.1:${port}`],
      rules: rulesWithoutDelay(),
    };
    const prometheus = resources.add(await startPrometheus(options), (one) =>
      one.stop(),
    );
    const isFiring = async () => (await firing(prometheus)).includes(alertName);
    const load = new Load({
      writers: [service],
      readers: [service],
      clients: 4,
    });

    await until(
      async () =>
        (await prometheus.query('animal_store_dependency_up'))[0] === 1,
    );
    // Before its first scrape Prometheus knows no node, so AnimalStoreAbsent
    // may fire.
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
      note: `${alertName} fired after ${Math.round(firedAt - stoppedAt)} ms; recovery is from the database's start to the alert's end`,
      faults: before.map(
        (name) => `${name} fired before the database was stopped`,
      ),
    };
  },
};

/** The published rules, with `for` reduced to a second. */
function rulesWithoutDelay(): string {
  return readFileSync('operations/prometheus/alerts.yaml', 'utf8').replaceAll(
    /^( +for:) .*$/gm,
    '$1 1s',
  );
}

async function firing(
  prometheus: TestPrometheus,
): Promise<Array<string | undefined>> {
  const alerts = await prometheus.alerts();
  return alerts
    .filter(({ state }) => state === 'firing')
    .map(({ labels }) => labels.alertname);
}

/** @throws Error when the condition is not met within 30 seconds */
async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error('The condition was not met within 30 s.');
    await pause(50);
  }
}
