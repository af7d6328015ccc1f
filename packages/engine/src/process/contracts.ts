import { printSchema } from 'graphql';
import { inMemory } from '../access/limits/limiter.ts';
import { anyServer } from '../api/rest/openapi.ts';
import { buildApp } from '../app.ts';
import { loadConfig } from '../config/config.ts';
import { readVariables } from '../config/variables.ts';
import { Database } from '../database/database.ts';
import { type Service, startFeatures } from '../feature.ts';
import { Log } from '../runtime/log/log.ts';
import { modelOf } from './model.ts';
import type { Opened } from './service-types.ts';

/**
 * The served contracts, by file name. Connects to no database.
 *
 * @param own the environment of the modules' own variables
 * @throws Error that names every fault of the modules
 */
export async function contracts(
  service: Service,
  own: NodeJS.Dict<string> = {},
): Promise<Record<string, string>> {
  const env = {
    DATABASE_URL: 'postgres://nobody@127.0.0.1/none',
    LOG_LEVEL: 'silent',
  };
  const { features } = service;
  const modules = await service.modules();
  const config = loadConfig(env, [...modules, ...features], service);
  for (const { variables = {} } of modules) {
    const values = readVariables(variables, own);
    Object.assign(config.values, values);
  }
  const log = new Log(config.log);
  const context = { config, log: log.logger, limiters: inMemory };
  const parts = await startFeatures(features, context);
  // The last one that was opened is closed first.
  const opened: Opened[] = [...parts];
  try {
    const database = await Database.open(config.database, modelOf(modules));
    opened.unshift(database);
    const app = await buildApp({ config, database, modules, parts, log });
    opened.unshift(app);
    await app.ready();
    const openApi = { ...app.swagger(), servers: [anyServer] };
    return {
      'openapi.json': `${JSON.stringify(openApi, null, 2)}\n`,
      'schema.graphql': `${printSchema(app.graphqlSchema)}\n`,
    };
  } finally {
    for (const one of opened) await one.close?.();
  }
}
