import type { Described } from './config.checks.ts';
import { variables } from './config.ts';

/** Where to read on about a variable, from `docs/`; the first that matches. */
const pages: Array<[name: RegExp, page: string]> = [
  [/^OPERATIONS_/, 'observe.md#metrics'],
  [/^WORKERS$/, 'operate.md#all-cores'],
  [/^DATABASE_(DIRECT_URL|PREPARED)/, 'scale.md#poolers'],
  [/^(DATABASE_READ_URLS|READ_)/, 'scale.md#read-nodes'],
  [/^DATA_DIR$/, 'operate.md#the-embedded-store'],
  [/^MIGRATE_/, 'operate.md#migrations-while-the-service-runs'],
  [/^BOOTSTRAP_/, 'keys.md#without-a-first-key'],
  [/^LOG_/, 'logs.md'],
  [/^IDEMPOTENCY_/, 'decisions.md#idempotency'],
  [/^(QUOTA_|REDIS_)/, 'decisions.md#quotas'],
  [/^GRAPHQL_(MAX_|INTROSPECTION)/, 'graphql.md#limits'],
  [/^(TRUSTED_DOCUMENTS|GRAPHQL_APQ)$/, 'graphql.md#documents-by-their-hash'],
  [/^DRAIN_/, 'operate.md#health-and-shutdown'],
  [/^COMPRESSION$/, 'decisions.md#compression'],
  [/^EXPLORER$/, 'decisions.md#explorers'],
  [/^SUBSCRIPTION/, 'live.md'],
  [/^MAX_CONNECTIONS$/, 'operate.md#limits'],
];

const beginning = `<!-- Written by \`npm run schema\` from src/config.ts: change it there. -->

# Configuration

Environment variables; \`start\` has flags for four of them ([cli.md](cli.md)). An empty one counts as absent. What cannot be used stops the start with a message that lists every mistake; what is in force is in the log's line \`started\`, without secrets. [.env.example](../.env.example) has them all to be copied. Where several values may be given, commas separate them.

| variable | takes | default | meaning |
|---|---|---|---|
`;

const end = `
Traces are switched on by OpenTelemetry's own variables ([observe.md](observe.md#traces)). The image has defaults of its own for \`HOST\`, \`OPERATIONS_HOST\`, \`DATA_DIR\` and \`DRAIN_DELAY_MS\` ([Dockerfile](../Dockerfile)).
`;

/** `docs/configuration.md`: every variable, in the order of the configuration. */
export function configurationPage(): string {
  const rows = Object.entries(variables).map(([name, spec]) => {
    const [, page] = pages.find(([pattern]) => pattern.test(name)) ?? [];
    const more = page ? ` ([more](${page}))` : '';
    return `| \`${name}\` | ${taken(spec)} | ${shown(spec.default)} | ${spec.desc}${more} |\n`;
  });
  return `${beginning}${rows.join('')}${end}`;
}

interface Spec extends Described {
  choices?: readonly unknown[];
  default?: unknown;
  desc?: string;
}

function taken({ takes, choices, default: otherwise }: Spec): string {
  if (takes) return takes;
  if (choices) return choices.map(code).join(' ');
  return typeof otherwise === 'boolean' ? '`true` `false`' : typeof otherwise === 'number' ? '1 to 65535' : 'text';
}

function shown(value: unknown): string {
  return value === undefined || (Array.isArray(value) && value.length === 0) ? 'none' : code(value);
}

const code = (value: unknown) => `\`${value}\``;
