import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { getPetDeprecation } from '../../../../src/pets/pet.types.ts';
import {
  allMetrics,
  type MetricDescription,
} from '../../../features/metrics/measured.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
import { send } from '../../../support/http.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import { startMeasured } from '../../../support/metrics.ts';
import { eventually } from '../../../support/process.ts';
import {
  hasPrometheus,
  promtool,
} from '../../../support/servers/prometheus.ts';
import { type Claim, mistyped } from '../../support/typed.ts';
import { type Use, usesOf } from './promql.ts';

/**
 * The rules, the runbook and the dashboard, validated against Prometheus,
 * Grafana and the metrics of the service.
 */
interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

const text = readFileSync('operations/prometheus/alerts.yaml', 'utf8');
const rules: Rule[] = parse(text).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const names = alerts.map(({ alert }) => alert).sort();
const runbook = readFileSync('docs/runbook.md', 'utf8');

const dashboard = JSON.parse(
  readFileSync('operations/grafana/animal-store.json', 'utf8'),
);
const targets: Array<{ expr: string; legendFormat: string }> =
  dashboard.panels.flatMap(({ targets = [] }: any) => targets);
/** The queries of the dashboard with the variables of Grafana replaced. */
const queries = targets.map(({ expr }) =>
  expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$job', 'animal-store')
    .replaceAll('$instance', '.*'),
);

(hasPrometheus ? describe : describe.skip)(
  'Prometheus (skipped without it)',
  () => {
    /** Runs promtool in a new folder with these files. */
    async function check(files: Record<string, string>, ...args: string[]) {
      const folder = await newFolder();
      for (const [name, content] of Object.entries(files))
        writeFileSync(join(folder, name), content);
      return promtool(args, folder).finally(() =>
        rmSync(folder, { recursive: true }),
      );
    }

    test('accepts the alert rules and every query of the dashboard; each alert fires and ends as its tests expect', async () => {
      expect(
        await promtool(['test', 'rules', 'alerts.test.yaml']),
      ).toMatchObject({ isOk: true });
      expect(
        await promtool(['check', 'config', 'prometheus.yaml']),
      ).toMatchObject({ isOk: true });
      const { isOk, output } = await promtool([
        'check',
        'rules',
        'alerts.yaml',
      ]);
      expect([isOk, output]).toEqual([
        true,
        expect.stringContaining(`SUCCESS: ${rules.length} rules found`),
      ]);
      const asRules = queries.map((expr, at) => ({
        record: `dashboard:query${at}`,
        expr,
      }));
      const file = JSON.stringify({
        groups: [{ name: 'dashboard', rules: asRules }],
      });
      const checked = await check(
        { 'queries.yaml': file },
        'check',
        'rules',
        'queries.yaml',
      );
      expect(checked.output).toContain(
        `SUCCESS: ${queries.length} rules found`,
      );
    });

    test('fires for a deprecated call from ninety days before the removal', async () => {
      // promtool's clock begins in 1970 and steps through the time, so the
      // removal is moved to the 100th day.
      const sooner = text.replace(
        `${getPetDeprecation.removal.getTime() / 1000}`,
        '8640000',
      );
      const files = { 'alerts.yaml': sooner, 'test.yaml': removalTest };
      const { isOk, output } = await check(files, 'test', 'rules', 'test.yaml');
      expect([isOk, output]).toEqual([
        true,
        expect.not.stringContaining('FAILED'),
      ]);
    });
  },
);

test('each alert has a test in which it fires, and one in which it is silent', () => {
  const { tests } = parse(
    readFileSync('operations/prometheus/alerts.test.yaml', 'utf8'),
  );
  const cases = [...tests, ...parse(removalTest).tests].flatMap(
    ({ alert_rule_test }: any) => alert_rule_test,
  );
  const named = (isFiring: boolean) =>
    new Set(
      cases.flatMap(({ exp_alerts, alertname }: any) =>
        Boolean(exp_alerts) === isFiring ? alertname : [],
      ),
    );
  for (const isFiring of [true, false])
    expect([...named(isFiring)].sort()).toEqual(names);
});

test('each alert has a severity, a summary, a description and the address of its chapter in the runbook', () => {
  const chapters = runbook
    .split('\n## ')
    .filter((chapter) => chapter.startsWith('AnimalStore'));
  expect(chapters.map((chapter) => chapter.split('\n')[0]).sort()).toEqual(
    names,
  );
  for (const chapter of chapters) {
    const words = [...chapter.matchAll(/^\*\*(\w+)\.\*\*/gm)].map(
      ([, word]) => word,
    );
    expect([chapter, words]).toEqual([chapter, ['Look', 'Do']]);
  }
  for (const { alert, labels, annotations } of alerts) {
    expect(['page', 'ticket']).toContain(labels.severity);
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^[A-Z]/),
      description: expect.stringMatching(/\.$/),
      runbook_url: `docs/runbook.md#${alert?.toLowerCase()}`,
    });
  }
});

test('the rules have the same figures as the service and its deployments', () => {
  const rule = (name: string) =>
    alerts.find(({ alert }) => alert === name)?.expr;
  expect(rule('AnimalStoreDeprecatedCalls')).toContain(
    `> ${getPetDeprecation.removal.getTime() / 1000} - 90 * 86400`,
  );
  expect(rule('AnimalStoreMemoryHigh')).toContain(`> 0.9 * ${2 ** 30}`);
  expect(
    parse(readFileSync('compose.yaml', 'utf8'), { merge: true }).services[
      'store-1'
    ].mem_limit,
  ).toBe('1g');
  expect(
    readFileSync('operations/kubernetes/animal-store.yaml', 'utf8'),
  ).toContain('limits: { memory: 1Gi }');
});

const database = databaseForEach();

test('a real scrape has every metric that the dashboard and the rules use, with the labels that they use', async () => {
  const server = await startMeasured({ ...database.env, WEBHOOKS: 'true' });
  const scraped = async () =>
    (await send(server.operations, { path: '/metrics' })).text;
  for (const path of ['/v1/pets', '/v1/pets/1', '/v1/nothing']) {
    for (const key of [server.key, 'another-key']) {
      await send(server.origin, {
        path,
        headers: { authorization: `Bearer ${key}` },
      });
    }
  }
  await eventually(async () =>
    /^animal_store_operations_total\{.*code="NOT_FOUND"/m.test(await scraped()),
  );
  const labels = labelsByMetric(await scraped(), await allMetrics());
  expect(
    [...rules.map(({ expr }) => expr), ...queries]
      .flatMap(usesOf)
      .flatMap(missingFrom(labels)),
  ).toEqual([]);
});

/**
 * The labels of each metric of a scrape. A metric without a series yet has the
 * labels with which it was created.
 */
function labelsByMetric(
  scrape: string,
  all: MetricDescription[],
): Map<string, Set<string>> {
  // The parent of workers has one more.
  const found = new Map(
    all.map(({ name }) => [name, new Set(['job', 'instance'])]),
  );
  for (const [, name = '', type] of scrape.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const series =
      type === 'histogram'
        ? ['_bucket', '_count', '_sum'].map((suffix) => name + suffix)
        : [name];
    for (const one of series) {
      const samples = [
        ...scrape.matchAll(new RegExp(`^${one}(?:\\{(.*)\\})? `, 'gm')),
      ];
      const used = samples.flatMap(([, list = '']) =>
        [...list.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
      );
      const expected =
        samples.length > 0
          ? used
          : (all.find((one) => one.name === name)?.labels ?? []);
      found.set(one, new Set([...expected, 'job', 'instance']));
    }
  }
  return found;
}

const missingFrom = (labels: Map<string, Set<string>>) => (use: Use) => {
  // `up` is Prometheus' own metric. A recorded metric has the labels that its
  // rule keeps.
  const isRecorded =
    use.metric === 'up' || rules.some(({ record }) => record === use.metric);
  const known = isRecorded
    ? new Set(['job', 'instance'])
    : labels.get(use.metric);
  if (!known) return [`no ${use.metric}`];
  return use.labels
    .filter((label) => !known.has(label))
    .map((label) => `${use.metric} has no ${label}`);
};

test('every legend of the dashboard uses labels that its query keeps', () => {
  const wrong = targets.flatMap(({ legendFormat }, at) => {
    const kept = new Set(
      usesOf(queries[at] ?? '').flatMap(({ labels }) => labels),
    );
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(
      ([, label = '']) => label,
    );
    return named
      .filter((label) => !kept.has(label))
      .map((label) => `${label} in ${legendFormat}`);
  });
  expect(wrong).toEqual([]);
});

test('the dashboard has the types that Grafana publishes for dashboards and panels', async () => {
  const { panels: all, ...rest } = dashboard;
  const claims: Claim[] = [{ value: rest, type: 'Plain<Dashboard>' }];
  for (const { targets, options, ...panel } of all) {
    if (panel.type === 'row') {
      claims.push({ value: panel, type: 'Plain<RowPanel>' });
      continue;
    }
    const { custom, ...defaults } = panel.fieldConfig.defaults;
    claims.push({
      value: { ...panel, fieldConfig: { ...panel.fieldConfig, defaults } },
      type: 'Plain<Panel>',
    });
    claims.push({
      value: targets,
      type: 'Plain<Omit<Dataquery, "_implementsDataqueryVariant">>[]',
    });
    claims.push({ value: options, type: `Plain<${panel.type}.Options>` });
    if (custom)
      claims.push({ value: custom, type: `Plain<${panel.type}.FieldConfig>` });
  }
  const sdk = '@grafana/grafana-foundation-sdk';
  const imports = `
    import type { Dashboard, Panel, RowPanel } from '${sdk}/dashboard';
    import type { Dataquery } from '${sdk}/prometheus';
    import type * as stat from '${sdk}/stat';
    import type * as timeseries from '${sdk}/timeseries';`;
  expect(await mistyped(imports, claims)).toBe('');
});

test('no two panels of the dashboard overlap or have the same id', () => {
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }: any) =>
    Array.from(
      { length: w * h },
      (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`,
    ),
  );
  for (const unique of [cells, dashboard.panels.map(({ id }: any) => id)])
    expect(new Set(unique).size).toBe(unique.length);
  expect(
    Math.max(...cells.map((cell: string) => Number.parseInt(cell, 10))),
  ).toBeLessThan(24);
});

const removalTest = `
rule_files: [alerts.yaml]
evaluation_interval: 1h
tests:
  - interval: 1h
    input_series:
      - series: 'animal_store_deprecated_calls_total{job="animal-store",operation="getPet",key="shop"}'
        values: '_x200 1x50 2x200'
    alert_rule_test:
      - { eval_time: 205h, alertname: AnimalStoreDeprecatedCalls }
      - { eval_time: 249h, alertname: AnimalStoreDeprecatedCalls }
      - eval_time: 260h
        alertname: AnimalStoreDeprecatedCalls
        exp_alerts: &fires
          - exp_labels: { job: animal-store, operation: getPet, key: shop, severity: ticket }
            exp_annotations:
              summary: A key still calls an operation that is removed soon
              description: "The key shop has called getPet 1 times in a day; the operation is removed on 2030-12-05."
              runbook_url: docs/runbook.md#animalstoredeprecatedcalls
      - { eval_time: 300h, alertname: AnimalStoreDeprecatedCalls }
  - interval: 1h
    input_series:
      - series: 'animal_store_deprecated_calls_total{job="animal-store",operation="getPet",key="shop"}'
        values: '_x300 1x50'
    alert_rule_test:
      - eval_time: 302h
        alertname: AnimalStoreDeprecatedCalls
        exp_alerts: *fires
`;
