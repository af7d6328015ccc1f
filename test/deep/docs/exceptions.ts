const ofExamples = 'test/deep/examples/programs.test.ts takes it from the page and runs it';
const ofClient = 'test/deep/examples/programs.test.ts takes it from the page and has it compiled';

/** Blocks that are not run here, by page and first line, and why. A page's new block is run, or has to be listed. */
export const exceptions: Record<string, Record<string, string>> = {
  'README.md': {
    'npm ci && npm start': 'CI installs so; test/operations/program.test.ts starts on an empty folder',
    'npm ci && npm test': 'it is what runs this',
    'export DATABASE_URL=postgres://user:password@host/database':
      'needs a PostgreSQL: CI runs the suite on one, test/keys the commands',
    'POSTGRES_PASSWORD=... docker compose up --build':
      'needs Docker; test/deep/operations/container.test.ts holds the files to the service',
  },
  'CONTRIBUTING.md': {
    'npm ci && npm run dev': 'runs for ever',
    'npm run drill                    # all: half an hour': 'CI has its short round; the whole takes half an hour',
  },
  'bench/README.md': {
    'export BENCH_DATABASE_URL=postgres://user:password@127.0.0.1/postgres':
      'needs a PostgreSQL, and 25 minutes; npm run check has its types',
  },
  'clients/typescript/README.md': {
    ...same(ofExamples, ['npm run --silent build --workspace animal-store-client', 'mkdir shop && cd shop']),
    ...same(ofClient, [
      "for await (const pet of store.pets({ status: 'sold' })) console.log(pet.id, pet.name);",
      "for await (const pet of store.added({ after: 0n, status: 'sold' }, { signal })) console.log(pet.id, pet.name);",
      "const list = new AnimalStore({ url, key, ids: 'string' });",
      "const { createPet } = await store.graphql(CreatePetDocument, { input: { name: 'Rex', categoryId: 5n } });",
      'try {',
    ]),
  },
  'docs/add-a-module.md': {
    ...same('test/modules/toys.test.ts compares it with what runs', [
      'const toyTable = defineEntity({',
      'open({ database }) {',
    ]),
    ...same('test/modules/visits.test.ts compares it with what runs', [
      '#transaction<Result>(work: (em: EntityManager) => Promise<Result>): Promise<Result> {',
      'async list(query: Input<typeof visitQuerySchema>, deadline: Deadline = noDeadline): Promise<Page<Visit>> {',
      "const one = '/visits/:visitId(^[^]+$)';",
    ]),
    ...same('a change to the sources; the test hands the same list over', [
      'cp -r test/modules/toys src/toys',
      "import { toysModule } from './toys/toys.module.ts';",
    ]),
  },
  'docs/clients.md': same(
    'needs @tanstack/react-query; test/deep/clients/typescript.test.ts has what the client promises',
    [
      "import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';",
      "import { QueryClient } from '@tanstack/react-query';",
    ],
  ),
  'docs/assistants.md': {
    'claude mcp add --transport http animal-store http://127.0.0.1:4000/mcp --header "Authorization: Bearer $KEY"':
      'needs an assistant; test/deep/clients/mcp.test.ts has the official client',
  },
  'docs/deploy.md': {
    ...same('needs Docker; test/deep/operations/container.test.ts and proxy.test.ts hold the files to the service', [
      'export POSTGRES_PASSWORD=$(openssl rand -hex 32)',
      'docker compose build',
    ]),
    'kubectl create secret generic animal-store --from-literal=database-url=postgres://...':
      'needs a cluster; test/deep/operations/manifests.test.ts checks what is applied',
    'cd operations/prometheus': 'test/deep/operations/alerts.test.ts does it',
  },
  'docs/develop.md': {
    'npm run dev                       # builds, runs on the embedded store, restarts at every change':
      'runs for ever, or is what runs this',
    'TEST_CITUS=8 TEST_DATABASE_URL=postgres://... npm test            # by id over 8 shards':
      'needs Citus; CI does it where it is',
  },
  'docs/live.md': {
    "import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';":
      'needs @apollo/client; test/deep/clients/live.test.ts follows and continues in the same way',
  },
  'docs/logs.md': {
    'id  at                   change   key  hint         user   sudoUser  host  command':
      'people and machines of an example; test/deep/keys/commands.test.ts has the columns',
  },
  'docs/move.md': {
    'createdb store                               # empty, in UTF8':
      'needs a PostgreSQL; test/deep/operations/promote.test.ts does it',
    'pg_dump --format=custom --file=store.dump "$DATABASE_URL"': "needs a PostgreSQL; PostgreSQL's own tools",
    "select setval('pet_id_seq', (select max(id) from pet));":
      'after \\copy into a PostgreSQL; test/deep/operations/readiness.test.ts',
  },
  'docs/runbook.md': {
    'curl -s http://127.0.0.1:9464/readyz                       # 200, or 503 and why':
      'to be typed at a fault; test/deep/operations/alerts.test.ts checks queries and metrics',
  },
  'docs/graphql.md': { 'type Visit {': 'of another subgraph; examples/federation/visits.js has it' },
  'docs/scale.md': {
    ...same('needs Citus; test/deep/database/citus.test.ts does it', [
      'npm run store -- migrate',
      "select create_reference_table('api_key');",
    ]),
  },
  'docs/tour.md': {
    'git clone <this repository> animal-store && cd animal-store': 'CI installs from a clean checkout; program.test.ts',
  },
  'examples/curl/README.md': { 'sh pets.sh': ofExamples },
  'examples/mcp/README.md': { 'python3 tools.py': ofExamples },
  'examples/node/README.md': { 'npm run --silent build --prefix ../../clients/typescript': ofExamples },
  'examples/python/README.md': { 'python3 pets.py': ofExamples },
  'examples/federation/README.md': {
    'node visits.js & node supergraph.js   # KEY=ask_... composes supergraph.graphql from both schemas':
      'test/deep/examples/federation.test.ts runs these programs',
    '{': 'for a gateway; test/deep/examples/federation.test.ts asks for both',
  },
  'examples/react/README.md': {
    'npm run dev': 'runs for ever; test/deep/browser/react-example.test.ts opens the built page',
  },
};

/** Programs that not every machine has: their blocks are skipped without them. CI has them. */
export const optional = ['curl', 'jq'];

function same(reason: string, lines: string[]): Record<string, string> {
  return Object.fromEntries(lines.map((line) => [line, reason]));
}
