import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

// Directus in one process, on the table `pet`. It looks the key up, as the
// service does, and writes no log.
const isCached = process.env.BENCH_CACHE === 'true';
Object.assign(process.env, {
  DB_CLIENT: 'pg',
  DB_CONNECTION_STRING: process.env.BENCH_DATABASE_URL,
  DB_POOL__MIN: '0',
  DB_POOL__MAX: '10',
  SECRET: 'a secret for these measurements',
  ADMIN_EMAIL: 'bench@example.com',
  ADMIN_PASSWORD: 'a password for these measurements',
  ADMIN_TOKEN: process.env.BENCH_KEY,
  LOG_LEVEL: 'silent',
  TELEMETRY: 'false',
  CACHE_ENABLED: `${isCached}`,
  CACHE_AUTO_PURGE: `${isCached}`,
  CACHE_SCHEMA_FREEZE_ENABLED: `${isCached}`,
});
// Its own tables, at the first start.
const cli = fileURLToPath(import.meta.resolve('@directus/api/cli/run.js'));
execFileSync(process.execPath, [cli, 'bootstrap']);
await import('@directus/api/start');
