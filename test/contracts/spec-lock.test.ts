import { readFileSync } from 'node:fs';
import { describe, expect, test } from '../support/jest.ts';
import { breakingChanges, type Contracts, checkLock, lockedContracts } from './spec-lock.ts';

const committed: Contracts = {
  'openapi.json': readFileSync('schema/openapi.json', 'utf8'),
  'schema.graphql': readFileSync('schema/schema.graphql', 'utf8'),
};

async function graphqlChanges(from: string | RegExp, to: string): Promise<string[]> {
  const changed = committed['schema.graphql'].replace(from, to);
  expect(changed).not.toBe(committed['schema.graphql']);
  return (await breakingChanges(committed, { ...committed, 'schema.graphql': changed }))['schema.graphql'];
}

/** The rules are those of @graphql-inspector: a few stand for all. */
describe('the GraphQL lock', () => {
  test.each([
    [
      'a removed field',
      /"""The animal's name."""\n {2}name: String!\n/,
      '',
      'Field `name` was removed from object type `Pet`',
    ],
    [
      'a narrower argument',
      'limit: Int = 20',
      'limit: Int! = 20',
      'Type for argument `limit` on field `Query.pets` changed from `Int` to `Int!`',
    ],
    [
      'another default',
      'limit: Int = 20',
      'limit: Int = 10',
      'Default value for argument `limit` on field `Query.pets` changed from `20` to `10`',
    ],
  ])('%s breaks', async (_name, from, to, sentence) => {
    expect(await graphqlChanges(from, to)).toContain(sentence);
  });

  test.each([
    ['a new field', 'type Pet {', 'type Pet {\n colour: String'],
    ['a new value', 'enum PetStatus {', 'enum PetStatus {\n reserved'],
  ])('%s does not break', async (_name, from, to) => {
    expect(await graphqlChanges(from, to)).toEqual([]);
  });
});

test('what breaks is told in sentences, with what to do', async () => {
  const served = {
    ...committed,
    'schema.graphql': committed['schema.graphql'].replace('limit: Int = 20', 'limit: Int! = 20'),
  };
  const { holds, report } = await checkLock(served, { name: 'v1.0.0', contracts: committed });
  expect(holds).toBe(false);
  expect(report).toMatch(
    /^schema\/schema.graphql breaks clients of v1.0.0:\n {2}- Type for argument `limit`.*\nKeep what clients rely on/,
  );
  expect(await checkLock(committed, { name: 'v1.0.0', contracts: committed })).toMatchObject({ holds: true });
});

describe('the specification', () => {
  const specification = (name: keyof Contracts) => readFileSync(`test/contracts/base/${name}`, 'utf8');
  const lock = {
    name: 'the specification',
    contracts: { 'openapi.json': specification('openapi.json'), 'schema.graphql': specification('schema.graphql') },
  };

  test('is locked until there is a release, and every client of it is served', async () => {
    expect(await checkLock(committed, lock)).toEqual({
      holds: true,
      report: 'spec lock: every client of the specification is still served',
    });
    if (lockedContracts().name === lock.name) expect(lockedContracts()).toEqual(lock);
  });

  test.each([
    [
      'a shorter name',
      '"maxLength": 1000',
      '"maxLength": 999',
      'POST /pets: the body.name had the maxLength none and has now 999',
    ],
    [
      'a smaller page',
      '"maximum": 100',
      '"maximum": 50',
      'GET /pets: the query parameter limit had the maximum 100 and has now 50',
    ],
    [
      'another operation',
      '"operationId": "createPet"',
      '"operationId": "addPet"',
      'POST /pets: its operationId was createPet and is now addPet',
    ],
  ])('does not allow %s', async (_what, from, to, sentence) => {
    const changed = committed['openapi.json'].replace(from, to);
    expect(changed).not.toBe(committed['openapi.json']);
    const { holds, report } = await checkLock({ ...committed, 'openapi.json': changed }, lock);
    expect({ holds, isTold: report.includes(`  - ${sentence}`) }).toEqual({ holds: false, isTold: true });
  });
});

test('a new major version may break', async () => {
  const next = committed['openapi.json'].replace('"version": "1.0.0"', '"version": "2.0.0"').replace('"/v1"', '"/v2"');
  expect(await breakingChanges(committed, { ...committed, 'openapi.json': next })).toEqual({
    'openapi.json': [],
    'schema.graphql': [],
  });
});
