import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { CriticalityLevel, diff } from '@graphql-inspector/core';
import { buildSchema } from 'graphql';
import { breakingOpenApiChanges } from './openapi-changes.ts';

/** The contracts as text, by file name. */
export type Contracts = Record<'openapi.json' | 'schema.graphql', string>;

/** The contracts whose clients must still be served. */
interface Lock {
  name: string;
  contracts: Contracts;
}

/**
 * @returns the breaking changes by contract; none when the major version was
 *   raised, because that allows breaks
 */
export async function breakingChanges(
  before: Contracts,
  after: Contracts,
): Promise<Record<keyof Contracts, string[]>> {
  const [old, now] = [
    JSON.parse(before['openapi.json']),
    JSON.parse(after['openapi.json']),
  ];
  if (
    Number.parseInt(now.info.version, 10) >
    Number.parseInt(old.info.version, 10)
  ) {
    return { 'openapi.json': [], 'schema.graphql': [] };
  }
  return {
    'openapi.json': breakingOpenApiChanges(old, now),
    'schema.graphql': await breakingGraphQLChanges(
      before['schema.graphql'],
      after['schema.graphql'],
    ),
  };
}

/**
 * @returns the breaking changes between two GraphQL schemas, by GraphQL
 *   Inspector
 */
async function breakingGraphQLChanges(
  before: string,
  after: string,
): Promise<string[]> {
  const changes = await diff(buildSchema(before), buildSchema(after));
  // A changed default changes the meaning of an old document, but Inspector
  // reports it as dangerous only.
  return changes
    .filter(
      ({ criticality: { level }, type }) =>
        level === CriticalityLevel.Breaking ||
        /DEFAULT(?:_VALUE)?_CHANGED$/.test(type),
    )
    .map(({ message }) => message.replaceAll("'", '`'));
}

/** Differences from the specification that were decided (docs/decisions.md). */
const decided = [
  'POST /pets: the body.name had the maxLength none and has now 1000',
  'POST /pets: the body.status had the default none and has now "available"',
];

/**
 * @returns a report for the developer, and whether each client of the locked
 *   contracts is still served
 */
export async function checkLock(
  served: Contracts,
  lock: Lock,
): Promise<{ holds: boolean; report: string }> {
  const changes = Object.entries(await breakingChanges(lock.contracts, served));
  const broken = changes
    .map(
      ([name, found]) =>
        [name, found.filter((change) => !decided.includes(change))] as const,
    )
    .filter(([, found]) => found.length > 0);
  if (broken.length === 0)
    return {
      holds: true,
      report: `spec lock: every client of ${lock.name} is still served`,
    };
  const lines = broken.flatMap(([name, found]) => [
    `schema/${name} breaks clients of ${lock.name}:`,
    ...found.map((change) => `  - ${change}`),
  ]);
  const advice =
    'Keep what clients rely on and add beside it; what must go is deprecated first and goes with a new major version.';
  return { holds: false, report: [...lines, advice].join('\n') };
}

/**
 * The contracts of the last release (the latest tag `v*`); before the first
 * one, those that the service was built for: `base/openapi.json` is the
 * specification, `base/schema.graphql` the first GraphQL schema. SPEC_LOCK_BASE
 * names any other commit.
 */
export function lockedContracts(): Lock {
  const base =
    process.env.SPEC_LOCK_BASE ||
    git('describe', '--tags', '--abbrev=0', '--match', 'v*')?.trim();
  const folder = base === undefined ? 'test/contracts/base' : 'schema';
  const read = (name: string) => {
    const path = `${folder}/${name}`;
    const text =
      base === undefined
        ? readFileSync(path, 'utf8')
        : git('show', `${base}:${path}`);
    if (text === undefined)
      throw new Error(`there is no ${path} at ${base} (SPEC_LOCK_BASE)`);
    return text;
  };
  const contracts = {
    'openapi.json': read('openapi.json'),
    'schema.graphql': read('schema.graphql'),
  };
  return { name: base ?? 'the specification', contracts };
}

function git(...command: string[]): string | undefined {
  try {
    return execFileSync('git', command, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 2 ** 26,
    });
  } catch {
    return undefined;
  }
}

if (
  process.argv[1] &&
  import.meta.url === pathToFileURL(process.argv[1]).href
) {
  const { contracts } = await import(
    pathToFileURL('packages/engine/dist/process/contracts.js').href
  );
  const { service } = await import(pathToFileURL('dist/src/service.js').href);
  const { holds, report } = await checkLock(
    await contracts(service),
    lockedContracts(),
  );
  console[holds ? 'log' : 'error'](report);
  process.exitCode = holds ? 0 : 1;
}
