// runs: embedded, postgres

import { databaseForAll } from '../support/fixtures.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { cli, freePort, killAll, runFile } from '../support/process.ts';

/** Every mistake of an author is named by one start, and by `doctor`. */

const database = databaseForAll();
beforeAll(async () => {
  await cli(['migrate'], database.env);
});
afterAll(killAll);

const run = async (command: string, args: string[] = []) => {
  const hook = new URL('mistakes/list-mistakes.js', import.meta.url);
  const PORT = `${await freePort()}`;
  const env = { ...database.env, NODE_OPTIONS: `--import=${hook}`, PORT };
  return runFile('dist/src/cli.js', [command, ...args], env).ended;
};

const indexes = (...lists: string[]) =>
  lists.map((list) => `{ properties: [${list}, 'id'] }`).join(', ');
const noIndex = 'Each combination of the filters of kennel';
const faults = [
  'The tables are not those of the entities:',
  'kennel does not exist',
  /^Write a migration/,
  'note of Kennel may be absent, so it must be nullable: Type.Optional(nullable(...)).',
  /^No column and no GraphQL type follows from .*"Its tags."}: write it by hand\.$/,
  /^A page could exceed 16 MiB: price and note and colour and story and sort have up to 32064 /,
  'The lists of kennels name age, which is no member.',
  'sort has two meanings in the list of kennels.',
  'Kennel has no relation dog.',
  "kennels lists kennels by ownerId alone: declare ['ownerId'] among the filters, and the combinations if any.",
  'Two kinds have the GraphQL name Size.',
  /^No rule checks length .*Its length.*: bound it \(maxLength/,
  /^kennel\.story has an unsupported type: varchar\(10\)\. Supported are /,
  "kennel.ownerId needs an index that begins with it: ['ownerId', 'id'].",
  "kennel.ownerId must be nullable for its deleteRule 'set null'.",
  `${noIndex} needs an index; the entity lacks ${indexes("'length'", "'ownerId'", "'length', 'ownerId'")}.`,
  // A list by a length needs no other index to be sorted by it.
  `${noIndex} sorted by length needs an index; the entity lacks ${indexes("'length'", "'ownerId', 'length'")}.`,
  'A module needs Toys, which the service does not list.',
  'GET /v1/things needs a summary.',
  'GET /v1/pets and GET /v1/things have the same operationId listPets.',
  'Two different schemas have the $id Pet.',
  'POST /v1/things needs a schema for its body.',
  /^Method 'GET' already declared for route '\/v1\/things'/,
  'Two resolvers define the GraphQL field Query.pets.',
  'Query.mistake needs a description.',
  'Kennel.colour needs a description.',
  'NewKennel.colour needs a description.',
  'Kennel.colour is a member: give the field with Kennel another name.',
  'Query.pets must say what it costs (complexity).',
  'Kennel.price has other digits in the REST schema than in the table.',
  'Kennel.tags is String! in the REST schema Kennel, and [Int!]! in the GraphQL type.',
].map((fault) =>
  typeof fault === 'string' ? fault : expect.stringMatching(fault),
);

test('a start names them all', async () => {
  const { code, stderr } = await run('start');
  const lines = stderr
    .replace(/^animal-store: /, '')
    .trimEnd()
    .split('\n');
  expect(lines.map((line) => line.trim())).toEqual(faults);
  expect(code).toBe(1);
});

test('doctor names them all, and what to do', async () => {
  const { code, stdout } = await run('doctor', ['--json']);
  const { findings } = JSON.parse(stdout);
  const failures = findings.filter(({ state }: any) => state === 'failure');
  const [modules, tables] = failures.map(({ found }: any) => found.split('\n'));
  expect(modules).toEqual(faults.slice(3));
  expect(tables.map((line: string) => line.trim())).toEqual(faults.slice(0, 3));
  const remedies = failures.map(({ remedy }: any) => remedy);
  expect(remedies).toEqual([
    'see docs/add-a-module.md',
    expect.stringContaining('animal-store migrate'),
  ]);
  expect(code).toBe(1);
});

test('a command that needs the modules names those of their declarations, and does nothing', async () => {
  const { code, stderr } = await run('migrate');
  expect(stderr).toContain('note of Kennel may be absent');
  expect(stderr).toContain('Kennel has no relation dog.');
  expect(code).toBe(1);
});
