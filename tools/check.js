// `npm run check` runs all of these; `npm run check -- contracts types` those
// with one of the words in their names. It goes on after a failure, and ends
// with a list of what has failed.
import { spawnSync } from 'node:child_process';
import { root } from '../bin/node.js';

/**
 * In this order: later ones use what the build has made. @type {Record<string,
 * string[]>}
 */
const checks = {
  build: [
    'node bin/build.js',
    'tsc -b --incremental',
    'tsc -p clients/typescript',
  ],
  lint: ['tools/node_modules/.bin/biome check .'],
  'types of the tests and drills': ['tsc -p test/tsconfig.json --noEmit'],
  'types of the scripts and the benchmark': ['tsc -p bench'],
  'types of the React example': ['tsc -p examples/react'],
  'contracts, compared with what the service serves': [
    'node dist/src/cli.js schema --check',
  ],
  'contracts, compared with the last release': [
    'node test/contracts/spec-lock.ts',
  ],
  'contracts, linted': [
    'node test/contracts/older-openapi.ts',
    'tools/node_modules/.bin/redocly lint --config tools/redocly.yaml',
  ],
  'generated types': [
    'graphql-codegen --config codegen.ts --check',
    'node test/deep/clients/client-types.ts --check',
  ],
  migrations: ['node test/contracts/migration-lint.ts'],
  'unused code': ['tools/node_modules/.bin/knip --config tools/knip.json'],
};

const words = process.argv.slice(2);
const failed = Object.entries(checks)
  .filter(
    ([name]) => words.length === 0 || words.some((word) => name.includes(word)),
  )
  .filter(([name, commands]) => {
    process.stderr.write(`--- ${name}\n`);
    return !commands.every(succeeds);
  });
for (const [name, commands] of failed)
  process.stderr.write(`failed: ${name} (${commands.join(' && ')})\n`);
process.exitCode = failed.length > 0 ? 1 : 0;

/** @param {string} command */
function succeeds(command) {
  // The PATH is npm's, with the programs of the project.
  const env = { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return (
    spawnSync(command, { cwd: root, env, shell: true, stdio: 'inherit' })
      .status === 0
  );
}
