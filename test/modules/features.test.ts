// runs: embedded, postgres

import { globSync, readFileSync } from 'node:fs';
import { text } from '#engine/config/variables.js';
import { feature } from '#engine/feature.js';
import { contracts } from '#engine/process/contracts.js';
import { startFailure } from '#engine/process/start-failure.js';
import { features } from '../../src/features.ts';
import { modules } from '../../src/modules.ts';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { serviceOf } from '../support/service.ts';
import { startStore } from '../support/store.ts';

/** The example of docs/develop.md. */
const region = feature({
  name: 'region',
  variables: { REGION: text(undefined, 'Value of the header `X-Region`.') },
  async start({ values: { REGION: name } }) {
    if (!name) return undefined;
    return {
      http(app) {
        app.addHook('onRequest', async (_request, reply) => {
          reply.header('x-region', name);
        });
      },
    };
  },
});

test('a feature adds a header, by its own variable', async () => {
  const store = await startStore(
    { REGION: 'north' },
    { parts: [...features, region] },
  );
  try {
    const { status, headers } = await rest(store, '/v1/pets');
    expect([status, headers['x-region']]).toEqual([200, 'north']);
  } finally {
    await store.close();
  }
});

test('a feature starts after those that it needs', async () => {
  const needy = { name: 'needy', needs: ['region'] };
  await expect(startStore({}, { parts: [needy, region] })).rejects.toThrow(
    'needy needs region before it in the list of the service.',
  );
  const { close } = await startStore({}, { parts: [region, needy] });
  await close();
});

test('a package of a feature that is not installed is named, with the command', () => {
  const absent = (name: string) =>
    Object.assign(new Error(`Cannot find package '${name}' imported from x`), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
  expect(startFailure(absent('jose'))).toMatch(
    /^Cannot find package 'jose' .*: npm install jose@[\d.]+$/,
  );
  expect(startFailure(absent('other'))).toBe(absent('other').message);
  // Of a host with several addresses.
  const refused = [new Error('refused'), new Error('late')];
  expect(startFailure(new AggregateError(refused))).toBe('refused; late');
});

/** A feature, and those that need it. */
const dependentsOf = (left: string) =>
  features.filter(
    ({ name, needs = [] }) => name === left || needs.includes(left),
  );

test.each(['all', ...features.map(({ name }) => name)])(
  'without %s the service has its contract, and answers on both APIs',
  async (left) => {
    const gone = left === 'all' ? features : dependentsOf(left);
    const parts = features.filter((one) => !gone.includes(one));
    const served = await contracts(serviceOf(modules, parts));
    expect(served['openapi.json']).toContain('"/pets"');
    expect(served['schema.graphql']).toContain('type Pet');
    const store = await startStore({}, { parts });
    try {
      const { status, json } = await rest(store, '/v1/pets');
      const answer = await graphqlText(store, { query: '{ pets { id } }' });
      expect([status, json, answer.data]).toEqual([200, [], { pets: [] }]);
    } finally {
      await store.close();
    }
  },
);

test('every folder of features/ is in the list once, under its name', () => {
  const folders = globSync('packages/engine/src/features/*/').map((path) =>
    path.replace(/^.*features\/|\/$/g, ''),
  );
  const names = features.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
  expect(names).toEqual(expect.arrayContaining(folders));
});

test('docs/develop.md shows a feature that runs, and docs/leave-parts-out.md lists each', () => {
  const linesIn = (path: string) => readFileSync(path, 'utf8').split(/\n */);
  const [, example = ''] =
    /```ts\n(import [\s\S]*?)```/.exec(
      readFileSync('docs/develop.md', 'utf8'),
    ) ?? [];
  const shown = example
    .split(/\n */)
    .filter((line) => !/^(import|\/\*\*)/.test(line));
  const run = linesIn('test/modules/features.test.ts');
  const known = new Set(run.flatMap((line) => [line, `export ${line}`]));
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.filter((line) => !known.has(line))).toEqual([]);
  const listed = linesIn('docs/leave-parts-out.md').map(
    (line) => /^\| `([\w-]+)` /.exec(line)?.[1],
  );
  expect(listed).toEqual(
    expect.arrayContaining(features.map(({ name }) => name)),
  );
});
