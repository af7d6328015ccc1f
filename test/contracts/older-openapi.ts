import { writeFileSync } from 'node:fs';
import type { startForTest } from '@animal-store/engine/testing';

/**
 * Writes the OpenAPI 3.0 document that the service serves, for the linter. Run
 * it after the build.
 */

// The sources use TypeScript that Node does not run.
const [testing, { service }] = await Promise.all(
  ['@animal-store/engine/testing', '../../dist/src/service.js'].map(
    (built) => import(built),
  ),
);
const start: typeof startForTest = testing.startForTest;
const { origin, close } = await start(service);
const response = await fetch(`${origin}/v1/openapi-3.0.json`);
writeFileSync('dist/openapi-3.0.json', await response.text());
await close();
