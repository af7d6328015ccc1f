import { readFileSync } from 'node:fs';
import { expect, test } from '../support/jest.ts';
import {
  breakingChanges,
  type Contracts,
  checkLock,
  lockedContracts,
} from './spec-lock.ts';

const committed: Contracts = {
  'openapi.json': readFileSync('schema/openapi.json', 'utf8'),
  'schema.graphql': readFileSync('schema/schema.graphql', 'utf8'),
};

/** The rules are those of @graphql-inspector; a few of them represent all. */
test('in the GraphQL schema a removed field and a changed default break clients, additions do not', async () => {
  const { 'schema.graphql': schema } = committed;
  const changes = async (from: string | RegExp, to: string) =>
    (
      await breakingChanges(committed, {
        ...committed,
        'schema.graphql': schema.replace(from, to),
      })
    )['schema.graphql'];
  expect(
    await changes(/(?<=^type Pet \{[^}]*)name: String!/m, 'other: String'),
  ).toContain('Field `name` was removed from object type `Pet`');
  expect(
    await changes(/(?<=^ {2}pets\([^)]*limit: Int = )20/m, '10'),
  ).toContain(
    'Default value for argument `limit` on field `Query.pets` changed from `20` to `10`',
  );
  expect(await changes('type Pet {', 'type Pet {\n reserved: String')).toEqual(
    [],
  );
  expect(
    await changes('enum PetStatus {', 'enum PetStatus {\n reserved'),
  ).toEqual([]);
});

test('the report has a sentence for each break, and advice', async () => {
  const served = {
    ...committed,
    'schema.graphql': committed['schema.graphql'].replace(
      /(?<=^ {2}pets\([^)]*limit: Int)(?= = 20)/m,
      '!',
    ),
  };
  const { holds, report } = await checkLock(served, {
    name: 'v1.0.0',
    contracts: committed,
  });
  expect(holds).toBe(false);
  expect(report).toMatch(
    /^schema\/schema.graphql breaks clients of v1.0.0:\n {2}- Type for argument `limit`.*\nKeep what clients rely on/,
  );
  expect(
    await checkLock(committed, { name: 'v1.0.0', contracts: committed }),
  ).toMatchObject({ holds: true });
});

test('the specification is locked until the first release, and every client of it is served', async () => {
  const specification = (name: keyof Contracts) =>
    readFileSync(`test/contracts/base/${name}`, 'utf8');
  const contracts = {
    'openapi.json': specification('openapi.json'),
    'schema.graphql': specification('schema.graphql'),
  };
  const lock = { name: 'the specification', contracts };
  const report = 'spec lock: every client of the specification is still served';
  expect(await checkLock(committed, lock)).toEqual({ holds: true, report });
  if (lockedContracts().name === lock.name)
    expect(lockedContracts()).toEqual(lock);
  // Only the decided differences are allowed.
  const shorter = committed['openapi.json'].replace(
    /(?<="NewPet": \{.*?"maxLength": )1000/s,
    '999',
  );
  const broken = await checkLock(
    { ...committed, 'openapi.json': shorter },
    lock,
  );
  expect(broken.holds).toBe(false);
  expect(broken.report).toContain(
    '  - POST /pets: the body.name had the maxLength none and has now 999',
  );
});

test('a new major version may break', async () => {
  const next = committed['openapi.json']
    .replace('"version": "1.0.0"', '"version": "2.0.0"')
    .replace('"/v1"', '"/v2"');
  expect(
    await breakingChanges(committed, { ...committed, 'openapi.json': next }),
  ).toEqual({
    'openapi.json': [],
    'schema.graphql': [],
  });
});
