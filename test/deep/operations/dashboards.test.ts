import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { databaseForEach } from '../../support/each.ts';
import { newFolder } from '../../support/folder.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { allMetrics, type MetricDescription, startMeasured } from '../../support/metrics.ts';
import { eventually } from '../../support/process.ts';
import { hasPrometheus, promtool } from '../../support/servers/prometheus.ts';
import { type Use, usesOf } from '../support/promql.ts';
import { type Claim, mistyped } from '../support/typed.ts';

const dashboard = JSON.parse(readFileSync('operations/grafana/animal-store.json', 'utf8'));
const panels = dashboard.panels.filter(({ type }: any) => type !== 'row');
const targets: Array<{ expr: string; legendFormat: string }> = panels.flatMap(({ targets }: any) => targets);
/** As Grafana writes its variables out. */
const queries = targets.map(({ expr }) =>
  expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'animal-store').replaceAll('$instance', '.*'),
);
const { groups } = parse(readFileSync('operations/prometheus/alerts.yaml', 'utf8'));
const rules: Array<{ record?: string; expr: string }> = groups.flatMap(({ rules }: any) => rules);
const recorded = new Set(rules.map(({ record }) => record).filter((name) => name !== undefined));

const database = databaseForEach();

test('a real scrape has every metric that the dashboard and the rules name, with these labels', async () => {
  const key = 'a-key-for-these-tests-and-no-others';
  const server = await startMeasured({ ...database.env, BOOTSTRAP_API_KEY: key, WORKERS: '2' });
  const scraped = async () => (await send(server.operations, { path: '/metrics' })).text;
  for (const path of ['/v1/pets', '/v1/pets/1', '/v1/nothing']) {
    for (const one of [key, 'another-key']) {
      await send(server.origin, { path, headers: { authorization: `Bearer ${one}` } });
    }
  }
  await eventually(async () => /^animal_store_operations_total\{.*code="NOT_FOUND"/m.test(await scraped()));

  const labels = labelsByMetric(await scraped(), await allMetrics());
  const unknown = [...rules.map(({ expr }) => expr), ...queries].flatMap(usesOf).flatMap(missingFrom(labels));
  expect(unknown).toEqual([]);
});

/** What a scrape has, by metric; a labelled one of which there is no series yet has the labels that it was created with. */
function labelsByMetric(scrape: string, all: MetricDescription[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, name = '', type] of scrape.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const series = type === 'histogram' ? ['_bucket', '_count', '_sum'].map((suffix) => name + suffix) : [name];
    for (const one of series) {
      const samples = [...scrape.matchAll(new RegExp(`^${one}(?:\\{(.*)\\})? `, 'gm'))];
      const seen = samples.flatMap(([, list = '']) => [...list.matchAll(/(\w+)="/g)].map(([, label = '']) => label));
      const expected = samples.length > 0 ? seen : (all.find((one) => one.name === name)?.labels ?? []);
      found.set(one, new Set([...expected, 'job', 'instance']));
    }
  }
  return found;
}

const missingFrom = (labels: Map<string, Set<string>>) => (use: Use) => {
  // `up` and `ALERTS` are Prometheus' own; what a rule records has the labels that it keeps.
  const known = use.metric === 'up' || recorded.has(use.metric) ? new Set(['job', 'instance']) : labels.get(use.metric);
  if (!known) return [`no ${use.metric}`];
  return use.labels.filter((label) => !known.has(label)).map((label) => `${use.metric} has no ${label}`);
};

test('every legend of the dashboard names labels that its query keeps', () => {
  const wrong = targets.flatMap(({ legendFormat }, at) => {
    const kept = new Set(usesOf(queries[at] ?? '').flatMap(({ labels }) => labels));
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    return named.filter((label) => !kept.has(label)).map((label) => `${label} in ${legendFormat}`);
  });
  expect(wrong).toEqual([]);
});

(hasPrometheus ? test : test.skip)(
  'Prometheus takes every query of the dashboard (skipped without Prometheus)',
  async () => {
    const folder = await newFolder();
    const asRules = queries.map((expr, at) => ({ record: `dashboard:query${at}`, expr }));
    writeFileSync(join(folder, 'queries.yaml'), JSON.stringify({ groups: [{ name: 'dashboard', rules: asRules }] }));
    const { said } = await promtool(['check', 'rules', 'queries.yaml'], folder);
    rmSync(folder, { recursive: true });
    expect(said).toContain(`SUCCESS: ${queries.length} rules found`);
  },
);

test('the dashboard is of the types that Grafana publishes for its dashboards and panels', async () => {
  const { panels: all, ...rest } = dashboard;
  const claims: Claim[] = [{ value: rest, type: 'Plain<Dashboard>' }];
  for (const { targets, options, ...panel } of all) {
    if (panel.type === 'row') {
      claims.push({ value: panel, type: 'Plain<RowPanel>' });
      continue;
    }
    const { custom, ...defaults } = panel.fieldConfig.defaults;
    claims.push({ value: { ...panel, fieldConfig: { ...panel.fieldConfig, defaults } }, type: 'Plain<Panel>' });
    claims.push({ value: targets, type: 'Plain<Omit<Dataquery, "_implementsDataqueryVariant">>[]' });
    claims.push({ value: options, type: `Plain<${panel.type}.Options>` });
    if (custom) claims.push({ value: custom, type: `Plain<${panel.type}.FieldConfig>` });
  }
  const sdk = '@grafana/grafana-foundation-sdk';
  const imports = `
    import type { Dashboard, Panel, RowPanel } from '${sdk}/dashboard';
    import type { Dataquery } from '${sdk}/prometheus';
    import type * as stat from '${sdk}/stat';
    import type * as timeseries from '${sdk}/timeseries';`;
  expect(await mistyped(imports, claims)).toBe('');
});

test('no panel of the dashboard lies over another one, or has its number', () => {
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }: any) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
  );
  for (const unique of [cells, dashboard.panels.map(({ id }: any) => id)])
    expect(new Set(unique).size).toBe(unique.length);
  expect(Math.max(...cells.map((cell: string) => Number.parseInt(cell, 10)))).toBeLessThan(24);
});
