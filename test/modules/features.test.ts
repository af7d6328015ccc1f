import { globSync, readFileSync } from 'node:fs';
import { loadConfig } from '#engine/config/config.js';
import { text } from '#engine/config/variables.js';
import { feature, removed } from '#engine/feature.js';
import { features } from '../../src/features.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
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
    'needy needs region before it in features.ts.',
  );
  const { close } = await startStore({}, { parts: [region, needy] });
  await close();
});

test('a setting of a feature that was deleted is refused by name', () => {
  const load = () =>
    loadConfig({ REGION: 'north' }, [removed('region', 'REGION')]);
  expect(load).toThrow('REGION belongs to region, which this build leaves out');
  expect(loadConfig({}, [removed('region', 'REGION')]).values).toEqual(
    expect.objectContaining({ PORT: 4000 }),
  );
});

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
