import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { coreVariables, loadConfig } from '#engine/config/config.js';
import { expect, test } from '../../support/jest.ts';

/**
 * The contents of the image, and its rights under compose. The test reads the
 * files, because it has no engine.
 */
const { services, networks } = parse(readFileSync('compose.yaml', 'utf8'), {
  merge: true,
});
const nodes = ['store-1', 'store-2'];
const stages = readFileSync('Dockerfile', 'utf8')
  .split(/^FROM /m)
  .slice(1);
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));

const compose = (...args: string[]) =>
  spawnSync('docker', ['compose', ...args], {
    env: { ...process.env, POSTGRES_PASSWORD: 'letters' },
    encoding: 'utf8',
  });

(compose('version').status === 0 ? test : test.skip)(
  'docker compose accepts the file (skipped without it)',
  () => {
    expect(compose('--profile', 'metrics', 'config', '-q')).toMatchObject({
      status: 0,
      stderr: '',
    });
  },
);

test('each container has limited rights, memory, processors and logs; nodes have a read-only file system', () => {
  const closed = {
    read_only: true,
    tmpfs: ['/tmp'],
    cap_drop: ['ALL'],
    init: true,
  };
  for (const name of nodes) expect(services[name]).toMatchObject(closed);
  const file = {
    'max-size': expect.stringMatching(/^\d+m$/),
    'max-file': expect.stringMatching(/^\d+$/),
  };
  for (const { security_opt, mem_limit, cpus, logging } of Object.values<any>(
    services,
  )) {
    expect(security_opt).toEqual(['no-new-privileges:true']);
    expect(mem_limit).toMatch(/^\d+[gm]$/);
    expect(cpus).toBeGreaterThan(0);
    expect(logging).toEqual({ driver: 'json-file', options: file });
  }
});

test('only the proxy and Prometheus publish a port, on loopback; only the nodes reach PostgreSQL', () => {
  const entries = Object.entries<any>(services);
  expect(
    entries
      .filter(([, { ports }]) => ports)
      .map(([name, { ports }]) => [name, ports]),
  ).toEqual([
    ['proxy', [`127.0.0.1:$\{PORT:-4000}:4000`]],
    ['prometheus', ['127.0.0.1:9090:9090']],
  ]);
  const inDatabase = entries.filter(([, service]) =>
    service.networks.includes('database'),
  );
  expect(inDatabase.map(([name]) => name)).toEqual([...nodes, 'postgres']);
  expect(services.postgres.networks).toEqual(['database']);
  expect(networks.database).toEqual({ internal: true });
});

test('the nodes have the addresses that proxy and Prometheus use, trust one hop, and get more time to stop than they need', () => {
  const [, delay] = /DRAIN_DELAY_MS=(\d+)/.exec(stages.at(-1) ?? '') ?? [];
  // The last 15 s are for the end of workers (docs/operate.md).
  const drain = Number(delay) + loadConfig({}).drainTimeout + 15_000;
  const proxy = readFileSync('operations/proxy/haproxy.cfg', 'utf8');
  const targets = parse(
    readFileSync('operations/prometheus/prometheus.yaml', 'utf8'),
  ).scrape_configs[0].static_configs[0];
  for (const name of nodes) {
    const { PORT, OPERATIONS_PORT, TRUST_PROXY } = services[name].environment;
    expect(proxy).toContain(
      `server ${name} ${name}:${PORT} port ${OPERATIONS_PORT}\n`,
    );
    expect(targets.targets).toContain(`${name}:${OPERATIONS_PORT}`);
    expect(TRUST_PROXY).toMatch(/:-1\}$/);
    expect(
      Object.keys(services[name].environment).filter(
        (name) => !(name in coreVariables),
      ),
    ).toEqual([]);
    expect(
      Number.parseInt(services[name].stop_grace_period, 10) * 1000,
    ).toBeGreaterThan(drain);
  }
});

test('compose.yaml contains no password and no key, and requires a password', () => {
  const lines = readFileSync('compose.yaml', 'utf8').split('\n');
  const secret = lines.filter(
    (line) => /PASSWORD|KEY|SECRET/.test(line) && !/^\s*#/.test(line),
  );
  expect(secret).toHaveLength(2);
  for (const line of secret)
    expect(line).toMatch(/\$\{POSTGRES_PASSWORD:\?[^}]+\}/);
});

test('the image contains no Node but its own, and runs it as a user other than root', () => {
  const [, , production = '', image = ''] = stages;
  expect(stages).toHaveLength(4);
  // All stages have the same base, so the installed packages run on it.
  expect(new Set(stages.map((stage) => stage.split(/\s/, 1)[0])).size).toBe(1);
  const [install] = /npm ci .*/.exec(production) ?? [];
  expect(install).toMatch(/--omit=dev --omit=optional\b/);
  const installed = Object.entries<any>(lock.packages).filter(
    ([, { dev, optional }]) => !dev && !optional,
  );
  expect(
    installed
      .filter(([path, { bin }]) => path && bin?.node)
      .map(([path]) => path),
  ).toEqual([]);
  expect(image).toContain(
    'COPY --from=production /app/node_modules node_modules',
  );
  expect(image).toMatch(/^USER 1000:1000$/m);
  // The image has no package manager either: a container installs nothing.
  expect(image).toMatch(
    /^RUN rm -rf \/usr\/local\/lib\/node_modules \/usr\/local\/bin\/npm /m,
  );
});
