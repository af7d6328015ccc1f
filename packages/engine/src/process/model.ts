import { EntitySchema } from '@mikro-orm/core';
import { DeprecatedCall } from '../access/deprecations/usage.ts';
import { IdempotencyKey } from '../access/idempotency/idempotency-key.entity.ts';
import { ApiKey, KeyEvent } from '../access/keys/api-key.entity.ts';
import type { Module } from '../api/module.ts';
import { loadConfig } from '../config/config.ts';
import { type Model, ormOptionsFor } from '../database/database.ts';
import { complete, databaseOptions, type Service } from '../feature.ts';
import { CreateApiKey } from '../migrations/2026_11_20_110000_create_api_key.ts';
import { CreateDeprecatedCall } from '../migrations/2026_11_20_130000_create_deprecated_call.ts';
import { CreateIdempotencyKey } from '../migrations/2026_11_22_120000_create_idempotency_key.ts';
import { CreateKeyEvent } from '../migrations/2026_11_22_130000_create_key_event.ts';
import { AllowScopesOfModules } from '../migrations/2026_11_28_010000_allow_scopes_of_modules.ts';
import { scopeNameOf } from '../scopes.ts';

/** Those whose tables the engine's own migrations change. */
const ownEntities = [ApiKey, DeprecatedCall, IdempotencyKey, KeyEvent];

const sharedMigrations = [
  { name: '2026_11_20_110000_create_api_key', class: CreateApiKey },
  {
    name: '2026_11_20_130000_create_deprecated_call',
    class: CreateDeprecatedCall,
  },
  {
    name: '2026_11_22_120000_create_idempotency_key',
    class: CreateIdempotencyKey,
  },
  { name: '2026_11_22_130000_create_key_event', class: CreateKeyEvent },
  {
    name: '2026_11_28_010000_allow_scopes_of_modules',
    class: AllowScopesOfModules,
  },
];

/**
 * The tables and migrations of all modules, and of the code that they share.
 */
export function modelOf(modules: Module[]): Model {
  const migrations = [
    ...modules.flatMap(({ migrations = [] }) => migrations),
    ...sharedMigrations,
  ];
  return {
    entities: [
      ...modules.flatMap(({ entities = [] }) => entities),
      ...ownEntities,
    ],
    migrations: migrations.sort((a, b) => (a.name < b.name ? -1 : 1)),
    modules: new Map(
      modules.flatMap(({ tag, entities = [] }) =>
        entities.map((entity) => [entity, scopeNameOf(tag.name)]),
      ),
    ),
  };
}

/**
 * For MikroORM's command line (`npx mikro-orm ...`), which uses the same
 * database as the service. The engine migrates its own tables, and those of its
 * features.
 */
export async function ormConfig(service: Service) {
  const { modules, features } = complete(service);
  const config = loadConfig(process.env, features, service);
  const given = await databaseOptions(features, config);
  const options = await ormOptionsFor(given, modelOf(await modules()));
  const own = await service.modules();
  const ofFeatures = (await modules()).filter((one) => !own.includes(one));
  const entities = ofFeatures.flatMap(({ entities = [] }) => entities);
  const skipTables = [...ownEntities, ...entities].flatMap((one) =>
    one instanceof EntitySchema ? one.meta.tableName : [],
  );
  options.schemaGenerator = { ...options.schemaGenerator, skipTables };
  return options;
}
