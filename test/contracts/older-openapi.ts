import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Writes the OpenAPI 3.0 document that the service serves, for the linter. Run
 * it after the build.
 */

// The sources use TypeScript that Node does not run.
const built = '../../packages/engine/dist/api/rest/openapi-3.0.js';
const { toOpenApi30 } = await import(built);
writeFileSync(
  'dist/openapi-3.0.json',
  JSON.stringify(
    toOpenApi30(JSON.parse(readFileSync('schema/openapi.json', 'utf8'))),
  ),
);
