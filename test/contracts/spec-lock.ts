import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { breakingGraphQLChanges } from './graphql-changes.ts';
import { breakingOpenApiChanges } from './openapi-changes.ts';

/** The contracts as text, by file name. */
export type Contracts = Record<'openapi.json' | 'schema.graphql', string>;

/** What may not be lost: the contracts at a commit, or, outside a repository, those in the folder. */
interface Lock {
  name: string;
  contracts: Contracts;
}

/** @returns what breaks clients, by contract; nothing when the major version was raised, which is the way to break. */
export async function breakingChanges(before: Contracts, after: Contracts): Promise<Record<keyof Contracts, string[]>> {
  const [old, now] = [JSON.parse(before['openapi.json']), JSON.parse(after['openapi.json'])];
  if (Number.parseInt(now.info.version, 10) > Number.parseInt(old.info.version, 10)) {
    return { 'openapi.json': [], 'schema.graphql': [] };
  }
  return {
    'openapi.json': breakingOpenApiChanges(old, now),
    'schema.graphql': await breakingGraphQLChanges(before['schema.graphql'], after['schema.graphql']),
  };
}

/**
 * Compares what a build serves with the last release (the latest tag `v*`), or with the last commit before there is
 * one; SPEC_LOCK_BASE names any other.
 *
 * @returns what to tell the developer, and whether the contract holds
 */
export async function checkLock(served: Contracts, lock: Lock): Promise<{ holds: boolean; report: string }> {
  const broken = Object.entries(await breakingChanges(lock.contracts, served)).filter(
    ([, changes]) => changes.length > 0,
  );
  if (broken.length === 0) return { holds: true, report: `spec lock: every client of ${lock.name} is still served` };
  const lines = broken.flatMap(([name, changes]) => [
    `schema/${name} breaks clients of ${lock.name}:`,
    ...changes.map((change) => `  - ${change}`),
  ]);
  const advice =
    'Keep what clients rely on and add beside it; what must go is deprecated first and goes with a new major version.';
  return { holds: false, report: [...lines, advice].join('\n') };
}

function lockedContracts(): Lock {
  const base =
    process.env.SPEC_LOCK_BASE || (git('describe', '--tags', '--abbrev=0', '--match', 'v*') ?? 'HEAD').trim();
  const at = (name: string) => git('show', `${base}:schema/${name}`);
  const [openapi, graphql] = [at('openapi.json'), at('schema.graphql')];
  if (openapi && graphql) return { name: base, contracts: { 'openapi.json': openapi, 'schema.graphql': graphql } };
  if (process.env.SPEC_LOCK_BASE) throw new Error(`there are no contracts at ${base} (SPEC_LOCK_BASE)`);
  const there = (name: string) => readFileSync(`schema/${name}`, 'utf8');
  return {
    name: 'schema/',
    contracts: { 'openapi.json': there('openapi.json'), 'schema.graphql': there('schema.graphql') },
  };
}

function git(...command: string[]): string | undefined {
  try {
    return execFileSync('git', command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 26 });
  } catch {
    return undefined;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { contracts } = await import(pathToFileURL('dist/src/contracts.js').href);
  const { modules } = await import(pathToFileURL('dist/src/modules.js').href);
  const { holds, report } = await checkLock(await contracts(modules), lockedContracts());
  console[holds ? 'log' : 'error'](report);
  process.exitCode = holds ? 0 : 1;
}
