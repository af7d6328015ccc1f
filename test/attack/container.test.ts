import { readFileSync } from 'node:fs';
import { expect, test } from '../support/jest.ts';

/** What the image holds, and what compose lets it do. Neither is built here: there is no Docker. */
const compose = readFileSync('compose.yaml', 'utf8');
const stages = readFileSync('Dockerfile', 'utf8')
  .split(/^FROM /m)
  .slice(1);
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));

/** One service of compose.yaml, without its comments, an entry a line. */
function service(name: string): string[] {
  const [, text = ''] = new RegExp(`^  ${name}:\n((?: {4}.*\n|\n)+)`, 'm').exec(compose) ?? [];
  return text.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('#'));
}

test('14.25: compose lets the service write nowhere but to memory, with no rights to gain', () => {
  expect(service('store')).toEqual(
    expect.arrayContaining([
      '    read_only: true',
      '    tmpfs: [/tmp]',
      '    cap_drop: [ALL]',
      '    security_opt: [no-new-privileges:true]',
      '    init: true',
    ]),
  );
  expect(service('postgres')).toContain('    security_opt: [no-new-privileges:true]');
});

test('14.25: the log of no container grows without end', () => {
  expect(service('store').join('\n')).toMatch(
    /logging: &(\w+)\n +driver: json-file\n +options: \{ max-size: \d+m, max-file: "\d+" \}/,
  );
  expect(service('postgres').join('\n')).toMatch(/logging: \*logging$/m);
});

test('14.25: compose knows no password and no key, and does not start without a password', () => {
  const lines = compose.split('\n').filter((line) => /PASSWORD|KEY|SECRET/.test(line) && !/^\s*#/.test(line));
  expect(lines).toHaveLength(2);
  for (const line of lines) expect(line).toMatch(/\$\{POSTGRES_PASSWORD:\?[^}]+\}/);
});

test('14.25: compose waits longer than the service takes to drain', () => {
  const image = stages.at(-1) ?? '';
  const delay = Number(/DRAIN_DELAY_MS=(\d+)/.exec(image)?.[1]);
  const [, timeout] = /^DRAIN_TIMEOUT_MS=(\d+)$/m.exec(readFileSync('.env.example', 'utf8')) ?? [];
  const [, grace] = /stop_grace_period: (\d+)s/.exec(compose) ?? [];
  expect(delay).toBeGreaterThan(0);
  expect(Number(grace) * 1000).toBeGreaterThan(delay + Number(timeout));
});

test('14.25: the image carries one Node, its own, and runs it as another user than root', () => {
  const [, production = '', image = ''] = stages;
  expect(stages).toHaveLength(3);
  // One base for all stages: what was installed for it runs on it.
  expect(new Set(stages.map((stage) => stage.split(/\s/, 1)[0])).size).toBe(1);
  const [install] = /npm ci .*/.exec(production) ?? [];
  expect(install).toMatch(/--omit=dev --omit=optional\b/);
  const installed = Object.entries<any>(lock.packages).filter(([, { dev, optional }]) => !dev && !optional);
  expect(installed.filter(([path, { bin }]) => path && bin?.node).map(([path]) => path)).toEqual([]);
  expect(image).toContain('COPY --from=production /app/node_modules node_modules');
  expect(image).toMatch(/^USER node$/m);
});
