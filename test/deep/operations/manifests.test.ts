import { readFileSync } from 'node:fs';
import * as apps from 'kubernetes-models/apps/v1';
import * as batch from 'kubernetes-models/batch/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import { parseAllDocuments } from 'yaml';
import { coreVariables, loadConfig } from '#engine/config/config.js';
import { expect, test } from '../../support/jest.ts';
import { mistyped } from '../support/typed.ts';

/**
 * The example for Kubernetes. Without a cluster it is validated against the
 * schemas of the API and the service.
 */
const manifests: any[] = parseAllDocuments(
  readFileSync('operations/kubernetes/animal-store.yaml', 'utf8'),
).map((one) => one.toJS());
const versions: Record<string, any> = {
  'apps/v1': apps,
  'batch/v1': batch,
  'networking.k8s.io/v1': networking,
  'policy/v1': policy,
  v1: core,
};
const named = (kind: string) => manifests.find((one) => one.kind === kind);
const deployment = named('Deployment').spec.template;
const [service] = deployment.spec.containers;
const [migration] = named('Job').spec.template.spec.containers;
/** In ms, with several workers: docs/operate.md. */
const lastSteps = 15_000;
const variable = (name: string) =>
  service.env.find((one: any) => one.name === name)?.value;

test('every manifest is valid by the schemas of the API, and has no member that the API does not define', async () => {
  for (const manifest of manifests)
    new versions[manifest.apiVersion][manifest.kind](manifest).validate();
  const kinds = manifests.map(({ kind }) => kind).sort();
  expect(kinds).toEqual([
    'Deployment',
    'Job',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'Service',
  ]);
  const names = Object.keys(versions);
  const imports = names.map(
    (version, at) =>
      `import type * as v${at} from 'kubernetes-models/${version}';`,
  );
  const claims = manifests.map((value) => ({
    value,
    type: `v${names.indexOf(value.apiVersion)}.I${value.kind}`,
  }));
  expect(await mistyped(imports.join('\n'), claims)).toBe('');
});

test.each([
  ['the service', deployment.spec, service],
  ['the migration', named('Job').spec.template.spec, migration],
])(
  '%s runs as an unprivileged user, writes to memory only, and gains no rights',
  (_, pod: any, container: any) => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory' } }],
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.volumeMounts).toEqual([
      { name: 'tmp', mountPath: '/tmp' },
    ]);
    expect(container.resources.requests).toEqual({
      cpu: expect.any(String),
      memory: expect.any(String),
    });
    expect(container.resources.limits).toEqual({ memory: expect.any(String) });
    // The user of the image, who owns its files.
    const [, user] =
      /^USER (\d+):/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];
    expect(`${pod.securityContext.runAsUser}`).toBe(user);
  },
);

test('Kubernetes waits longer than the service takes to drain', () => {
  const values = service.env.map(({ name, value }: any) => [name, value]);
  const { drainDelay, drainTimeout } = loadConfig(Object.fromEntries(values));
  expect(deployment.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(
    drainDelay + drainTimeout + lastSteps,
  );
  // A terminating pod must be removed from every list of endpoints before it
  // stops listening.
  const { periodSeconds, failureThreshold } = service.readinessProbe;
  expect(Number(variable('DRAIN_DELAY_MS'))).toBeGreaterThan(
    periodSeconds * failureThreshold * 1000,
  );
});

test('the service knows every variable of the pods, and the database URL comes from a secret', () => {
  const names = [...service.env, ...migration.env].map(({ name }: any) => name);
  expect(names.filter((name) => !(name in coreVariables))).toEqual([]);
  for (const { env } of [service, migration]) {
    expect(env.find(({ name }: any) => name === 'DATABASE_URL')).toEqual({
      name: 'DATABASE_URL',
      valueFrom: {
        secretKeyRef: { name: 'animal-store', key: 'database-url' },
      },
    });
  }
});

test('service, budget, policy and scrape annotations refer to the pods of the deployment and their ports', () => {
  const { labels, annotations } = deployment.metadata;
  expect(named('Deployment').spec.selector.matchLabels).toEqual(labels);
  expect(named('Service').spec.selector).toEqual(labels);
  expect(named('PodDisruptionBudget').spec.selector.matchLabels).toEqual(
    labels,
  );
  expect(labels).toMatchObject(
    named('NetworkPolicy').spec.podSelector.matchLabels,
  );
  const ports = new Map(
    service.ports.map(({ name, containerPort }: any) => [name, containerPort]),
  );
  expect(annotations['prometheus.io/port']).toBe(`${ports.get('operations')}`);
  expect(variable('OPERATIONS_PORT')).toBe(`${ports.get('operations')}`);
  expect(ports.has(named('Service').spec.ports[0].targetPort)).toBe(true);
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    expect(service[probe].httpGet.port).toBe('operations');
  }
  // Only Prometheus can reach the port that needs no key.
  const rules = named('NetworkPolicy').spec.ingress;
  const toOperations = rules.filter((rule: any) =>
    rule.ports.some(({ port }: any) => port === 'operations'),
  );
  const monitoring = {
    matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' },
  };
  const only = [{ protocol: 'TCP', port: 'operations' }];
  expect(toOperations).toEqual([
    { from: [{ namespaceSelector: monitoring }], ports: only },
  ]);
});

test('only the migration job migrates', () => {
  expect(variable('MIGRATE_ON_START')).toBe('false');
  expect(migration.command).toEqual(['node', 'dist/src/cli.js', 'migrate']);
  expect(migration.image).toBe(service.image);
});
