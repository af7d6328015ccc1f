import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { getPetDeprecation } from '../../../src/pets/pet.types.ts';
import { newFolder } from '../../support/folder.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { hasPrometheus, promtool } from '../../support/servers/prometheus.ts';

interface Rule {
  alert?: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

const text = readFileSync('operations/prometheus/alerts.yaml', 'utf8');
const rules: Rule[] = parse(text).groups.flatMap(({ rules }: { rules: Rule[] }) => rules);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const runbook = readFileSync('docs/runbook.md', 'utf8');

const withPromtool = hasPrometheus ? test : test.skip;

describe('the alert rules', () => {
  withPromtool('are taken by Prometheus; each fires when it must, and ends (skipped without Prometheus)', async () => {
    expect(await promtool(['test', 'rules', 'alerts.test.yaml'])).toMatchObject({ isContent: true });
    expect(await promtool(['check', 'config', 'prometheus.yaml'])).toMatchObject({ isContent: true });
    const { isContent, said } = await promtool(['check', 'rules', 'alerts.yaml']);
    expect(said).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(isContent).toBe(true);
  });

  withPromtool(
    'a deprecated call matters from ninety days before the removal (skipped without Prometheus)',
    async () => {
      const folder = await newFolder();
      // promtool's clock begins in 1970, and walks: there the removal is on the 100th day.
      const removal = `${getPetDeprecation.removal.getTime() / 1000}`;
      writeFileSync(join(folder, 'alerts.yaml'), text.replace(removal, '8640000'));
      writeFileSync(join(folder, 'test.yaml'), removalTest);
      const { isContent, said } = await promtool(['test', 'rules', 'test.yaml'], folder);
      rmSync(folder, { recursive: true });
      expect(said).not.toContain('FAILED');
      expect(isContent).toBe(true);
    },
  );
});

test('each alert has a test in which it fires, and one in which it is silent', () => {
  const { tests } = parse(readFileSync('operations/prometheus/alerts.test.yaml', 'utf8'));
  const cases = [...tests, ...parse(removalTest).tests].flatMap(({ alert_rule_test }: any) => alert_rule_test);
  const named = (isFiring: boolean) =>
    new Set(cases.flatMap(({ exp_alerts, alertname }: any) => (Boolean(exp_alerts) === isFiring ? alertname : [])));
  const names = alerts.map(({ alert }) => alert).sort();
  expect([...named(true)].sort()).toEqual(names);
  expect([...named(false)].sort()).toEqual(names);
});

test.each(alerts)(
  '$alert says how urgent it is, what it means, and where to read on',
  ({ alert, labels, annotations }) => {
    expect(['page', 'ticket']).toContain(labels.severity);
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^[A-Z]/),
      description: expect.stringMatching(/\.$/),
      runbook_url: `docs/runbook.md#${alert?.toLowerCase()}`,
    });
    const [, section = ''] = runbook.split(`\n## ${alert}\n`);
    // What it means, what to look at, what to do.
    const [chapter = ''] = section.split('\n## ');
    expect([...chapter.matchAll(/^\*\*(\w+)\.\*\*/gm)].map(([, word]) => word)).toEqual(['Means', 'Look', 'Do']);
  },
);

test('the runbook has a chapter for each alert, and no other', () => {
  const chapters = [...runbook.matchAll(/^## (AnimalStore\w+)$/gm)].map(([, name]) => name);
  expect(chapters.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
});

test('the rules count in the figures of what they watch', () => {
  const rule = (name: string) => alerts.find(({ alert }) => alert === name)?.expr;
  expect(rule('AnimalStoreDeprecatedCalls')).toContain(`> ${getPetDeprecation.removal.getTime() / 1000} - 90 * 86400`);
  expect(rule('AnimalStoreMemoryHigh')).toContain(`> 0.9 * ${2 ** 30}`);
  expect(parse(readFileSync('compose.yaml', 'utf8'), { merge: true }).services['store-1'].mem_limit).toBe('1g');
  expect(readFileSync('operations/kubernetes/animal-store.yaml', 'utf8')).toContain('limits: { memory: 1Gi }');
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
