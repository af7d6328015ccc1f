import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newFolder } from '../../../support/folder.ts';
import { toJson } from '../../../support/http.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import { eventually, type Running, runFile } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';

/**
 * examples/federation: the store and another subgraph, composed by
 * @apollo/composition, behind two real gateways.
 */

const folder = 'examples/federation';
const categoryId = 9007199254740993n;
const store = storeForAll({ GRAPHQL_FEDERATION: 'true' });
const run = promisify(execFile);
const running: Running[] = [];
let supergraph: string;

/** Starts a program of the example. @returns the address that it prints */
async function startProgram(
  program: string,
  args: string[] = [],
): Promise<string> {
  const process = runFile(`${folder}/${program}`, args, {
    PORT: '0',
    NODE_ENV: 'production',
  });
  running.push(process);
  const addressOf = () => /: (http:\/\/\S+)/.exec(process.output.stdout)?.[1];
  await eventually(async () => {
    if (process.child.exitCode !== null) throw new Error(process.output.stderr);
    return addressOf() !== undefined;
  });
  return addressOf() as string;
}

beforeAll(async () => {
  await rest(store, '/v1/pets', {
    method: 'POST',
    json: { name: 'Rex', categoryId },
  });
  const VISITS_URL = await startProgram('visits.js');
  supergraph = join(await newFolder(), 'supergraph.graphql');
  const env = {
    KEY: store.key,
    ANIMALS_URL: `${store.origin}/graphql`,
    VISITS_URL,
  };
  await run(process.execPath, [`${folder}/supergraph.js`, supergraph], { env });
});
afterAll(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
});

test('the supergraph has the animals of the store, and the fields of both subgraphs on them', async () => {
  expect(await readFile(supergraph, 'utf8')).toMatch(
    /^type Pet\n {2}@join__type\(graph: ANIMALS, key: "id"\)\n {2}@join__type\(graph: VISITS, key: "id"\)$/m,
  );
});

describe.each(['apollo.js', 'hive.js'])('behind %s', (program) => {
  let gateway: string;
  beforeAll(async () => {
    gateway = await startProgram(program, [supergraph]);
  });

  async function execute(
    query: string,
    variables = {},
    key: string | null = store.key,
  ) {
    const headers = {
      'content-type': 'application/json',
      ...(key && { authorization: `Bearer ${key}` }),
    };
    const response = await fetch(gateway, {
      method: 'POST',
      headers,
      body: toJson({ query, variables }),
    });
    return (await response.json()) as {
      data?: unknown;
      errors?: Array<{ extensions: { code?: string } }>;
    };
  }

  test('the store finds an animal of another subgraph by its id, or null for an unknown id', async () => {
    const pet = {
      id: '1',
      name: 'Rex',
      categoryId: `${categoryId}`,
      status: 'available',
    };
    for (let time = 1; time <= 3; time += 1) {
      // For the unknown animal Hive Gateway adds an error, and Apollo Gateway
      // an extension.
      const { data } = await execute(
        '{ visits { reason pet { id name categoryId status } } }',
      );
      expect(data).toEqual({
        visits: [
          { reason: 'vaccination', pet },
          { reason: 'no such animal', pet: null },
        ],
      });
    }
  });

  test('an animal of the store has the fields of another subgraph', async () => {
    const rex = { name: 'Rex', visits: [{ reason: 'vaccination' }] };
    expect(
      await execute('{ pets(limit: 1) { name visits { reason } } }'),
    ).toEqual({ data: { pets: [rex] } });
    const query =
      '{ petsConnection(first: 1) { edges { node { name visits { reason } } } pageInfo { startCursor } } }';
    const petsConnection = {
      edges: [{ node: rex }],
      pageInfo: { startCursor: '1' },
    };
    expect(await execute(query)).toEqual({ data: { petsConnection } });
  });

  test('ids beyond 2^53 stay exact in both directions; the key of the client decides its rights', async () => {
    const query =
      'mutation Add($id: ID!) { createPet(input: { name: "Tom", categoryId: $id }) { categoryId visits { reason } } }';
    const created = {
      data: { createPet: { categoryId: '9223372036854775807', visits: [] } },
    };
    expect(await execute(query, { id: '9223372036854775807' })).toEqual(
      created,
    );
    const { key: reader } = await store.keys.issue({
      name: 'reader',
      scope: 'read',
    });
    const refused = await execute(query, { id: '1' }, reader);
    expect(refused.errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    const { errors } = await execute('{ pets { name } }', {}, null);
    expect(errors?.[0]?.extensions.code).toBe('UNAUTHENTICATED');
  });
});
