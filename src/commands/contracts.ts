import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { printSchema } from 'graphql';
import { type Module, variablesOf } from '../api/module.ts';
import { anyServer } from '../api/rest/openapi.ts';
import { buildApp } from '../app.ts';
import { loadConfig, variables } from '../config/config.ts';
import type { Variables } from '../config/variables.ts';
import { Database } from '../database/database.ts';
import { modelOf } from '../modules/mikro-orm.config.ts';
import { modules } from '../modules/modules.ts';

/** The served contracts, by file name. Connects to no database. */
export async function contracts(
  modules: Module[],
): Promise<Record<string, string>> {
  const env = {
    DATABASE_URL: 'postgres://nobody@127.0.0.1/none',
    LOG_LEVEL: 'silent',
  };
  const config = loadConfig(env, variablesOf(modules));
  const database = await Database.open(config.database, modelOf(modules));
  const app = await buildApp({ config, database, modules });
  try {
    await app.ready();
    return {
      'openapi.json': `${JSON.stringify({ ...app.swagger(), servers: [anyServer] }, null, 2)}\n`,
      'schema.graphql': `${printSchema(app.graphqlSchema)}\n`,
    };
  } finally {
    await app.close();
    await database.close();
  }
}

/**
 * Writes the contracts to a folder, and `docs/configuration.md`; with `check`,
 * compares them with the files there.
 *
 * @throws Error that names a file that differs
 */
export async function emitContracts(
  folder: string,
  check: boolean,
): Promise<void> {
  const files = Object.entries(await contracts(modules)).map(
    ([name, text]) => [join(folder, name), text] as const,
  );
  for (const [path, served] of [
    ...files,
    ['docs/configuration.md', configurationPage(modules)] as const,
  ]) {
    if (!check) await writeFile(path, served);
    else if ((await readFile(path, 'utf8')) !== served) {
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
    }
  }
}

/**
 * `docs/configuration.md`: every variable, in the order of the configuration.
 */
export function configurationPage(modules: Module[]): string {
  const all: Variables = { ...variables, ...variablesOf(modules) };
  const rows = Object.entries(all).map(
    ([name, { desc, takes, default: value }]) => {
      const isNone =
        value === undefined || (Array.isArray(value) && value.length === 0);
      const meaning = desc.replace(/\((\w+\.md)\)\.$/, '([more]($1)).');
      return `| \`${name}\` | ${takes} | ${isNone ? 'none' : `\`${value}\``} | ${meaning} |\n`;
    },
  );
  return `<!-- Written by \`npm run schema\` from src/config/config.ts: change it there. -->

# Configuration

All configuration is in environment variables; \`start\` has flags for four of them ([cli.md](cli.md)). An empty variable counts as absent. An invalid configuration stops the start with a message that lists every mistake. A line of \`.env\` that sets no variable stops it, too; a name that is nearly one of these is named at the start and by \`doctor\`. The log line \`started\` has the values in force, without secrets. [.env.example](../.env.example) lists all variables for copying. Commas separate several values.

| variable | takes | default | meaning |
|---|---|---|---|
${rows.join('')}
OpenTelemetry's own variables switch traces on ([observe.md](observe.md#traces)). The image has its own defaults for \`HOST\`, \`OPERATIONS_HOST\`, \`DATA_DIR\` and \`DRAIN_DELAY_MS\` ([Dockerfile](../Dockerfile)).
`;
}
