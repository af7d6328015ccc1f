import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readTrustedDocuments } from '../../api/graphql/trusted-documents.ts';
import { type Config, loadConfig, variables } from '../../config.ts';
import { modelOf } from '../../mikro-orm.config.ts';
import { modules } from '../../modules.ts';
import { releasedVersion } from '../../version.ts';
import { lookAtReadNodes, lookAtRedis } from './companions.ts';
import { lookAtDatabase } from './database.ts';
import { lookAtDocuments, lookAtEnvironment } from './environment.ts';
import type { Finding } from './finding.ts';
import { lookAtFolder, lookAtMachine } from './machine.ts';
import { lookAtPort } from './ports.ts';

/**
 * Looks at all that the service needs, changes nothing of it, and takes bounded time: what does not answer is told as
 * what it is.
 */
export async function examine(env: Record<string, string | undefined>): Promise<Finding[]> {
  let config: Config | undefined;
  const load = () => {
    config = loadConfig(env);
  };
  const environment = await lookAtEnvironment({ env, names: Object.keys(variables), load });
  const machine = await lookAtMachine({ freshness: await freshness(), version: releasedVersion() });
  return [...environment, ...machine, ...(config ? await lookAtService(config) : [])];
}

async function lookAtService(config: Config): Promise<Finding[]> {
  const { database, operations, graphql, workers } = config;
  const { trustedDocuments: path } = graphql;
  const found = await Promise.all([
    lookAtPort({ port: config.port, host: config.host, variables: '' }),
    ...(operations.port > 0 ? [lookAtPort({ ...operations, variables: 'OPERATIONS_' })] : []),
    ...(path ? [lookAtDocuments(() => readTrustedDocuments(path))] : []),
    ...(database.url ? [] : [lookAtFolder(database.dataDir)]),
    lookAtDatabase({
      database,
      model: modelOf(modules),
      migrateOnStart: config.migrateOnStart,
      hasBootstrapKey: config.keys.bootstrapKey !== undefined,
      workers: workers === 'auto' ? availableParallelism() : workers,
    }),
    lookAtReadNodes(database),
    lookAtRedis(config.keys.redisUrl),
  ]);
  return found.flat();
}

/** The launcher's own judgement, where there is a launcher. */
async function freshness(): Promise<string | undefined> {
  const root = join(import.meta.dirname, '..', '..', '..', '..');
  const launcher = pathToFileURL(join(root, 'bin/launcher/freshness.js')).href;
  const judge: { freshness(root: string): string } | undefined = await import(launcher).catch(() => undefined);
  return judge?.freshness(root);
}
