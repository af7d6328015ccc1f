import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { features } from '../../src/features.ts';
import { describe, expect, test } from '../support/jest.ts';

/**
 * The floors of the engine, from top to bottom: a file imports its own floor,
 * those below it, and the packages.
 */
const floors = [
  'index resources testing main cli process commands app',
  'features',
  'feature commands/program commands/files process/start-failure process/service-types',
  'pets orders',
  'api/module',
  'api',
  'access',
  'records',
  'validation',
  'runtime',
  'database',
  'call errors once retry scopes shared-budget migrations',
  'config',
].map((names) => names.split(' '));
/** The folders of test/modules are modules, too. */
const modules = floors.findIndex((names) => names.includes('pets'));

/** What files of a kind never import. */
const never: Array<[kind: RegExp, imported: RegExp, reason: string]> = [
  [
    /(service|entity)\.ts$|^(records|validation)\//,
    /^(@?fastify|(type-)?graphql|@apollo|@animal-store\/(graphql|openapi))\b|^(api|config)\//,
    'a service knows neither API, nor the configuration',
  ],
  [
    /\.(routes|resolver|types|schemas)\.ts$/,
    /^(@mikro-orm|pg)\b|^(database|records)\//,
    'only a service has rows',
  ],
];

const testModules = new Set(
  globSync('test/modules/*/').map((path) => basename(path)),
);
const floorOf = (path: string) => {
  const [folder = ''] = path.replace(/\.ts$/, '').split('/');
  const found = [path.replace(/\.ts$/, ''), folder].map((name) =>
    floors.findIndex((floor) => floor.includes(name)),
  );
  return (
    found.find((at) => at >= 0) ?? (testModules.has(folder) ? modules : -1)
  );
};
const importsOf = (file: string) =>
  [
    ...readFileSync(file, 'utf8').matchAll(
      /(?:\bfrom |^import |\bimport\(\s*)'([^']+)'/gm,
    ),
  ].map(([, name = '']) =>
    name.startsWith('.') ? join(dirname(file), name) : name,
  );
const nameOf = (path: string) =>
  path.replace(/^(packages\/engine\/src|src|test\/modules)\//, '');
const graphOf = (...globs: string[]) =>
  new Map(globSync(globs).map((file) => [file, importsOf(file)]));
/** By the names of floors. */
const namedGraphOf = (...globs: string[]) =>
  new Map(
    [...graphOf(...globs)].map(([file, imported]) => [
      nameOf(file),
      imported.map(nameOf),
    ]),
  );

test('a file of the service imports its own floor and those below it', () => {
  const graph = namedGraphOf(
    'src/*/*.ts',
    'packages/engine/src/**/*.ts',
    'test/modules/*/*.ts',
  );
  expect([...graph.keys()].filter((file) => floorOf(file) < 0)).toEqual([]);
  const wrong = [...graph].flatMap(([file, imported]) =>
    imported.flatMap((name) => [
      ...(floorOf(name) >= 0 && floorOf(name) < floorOf(file)
        ? [`${file} -> ${name}: a floor above`]
        : []),
      ...never.flatMap(([kind, to, why]) =>
        kind.test(file) && to.test(name) ? [`${file} -> ${name}: ${why}`] : [],
      ),
    ]),
  );
  expect(wrong).toEqual([]);
});

describe('features', () => {
  const folderOf = (name: string) => /^features\/([^/]+)\//.exec(name)?.[1];
  const graph = namedGraphOf('packages/engine/src/**/*.ts');

  test('no file of the engine imports a feature but those that need it', () => {
    const needs = new Map(features.map((one) => [one.name, one.needs ?? []]));
    const wrong = [...graph].flatMap(([file, imported]) => {
      const own = folderOf(file);
      const allowed = own ? [own, ...(needs.get(own) ?? [])] : [];
      return imported
        .filter((name) => folderOf(name))
        .filter((name) => !allowed.includes(`${folderOf(name)}`))
        .map((name) => `${file} -> ${name}`);
    });
    expect(wrong).toEqual([]);
  });

  test('an index imports variables and types only, because every command loads it', () => {
    const light = ['feature.ts', 'config/variables.ts'];
    const types = /^import type [^;]*;/gm;
    const statement =
      /^import [^;]*?from '([^']+)'|^(?:import|export) [^;]*?'([^']+)';/gm;
    const wrong = globSync('packages/engine/src/features/*/index.ts').flatMap(
      (file) => {
        const text = readFileSync(file, 'utf8').replace(types, '');
        return [...text.matchAll(statement)]
          .map(([, from, other = '']) => from ?? other)
          .map((name) => nameOf(join(dirname(file), name)))
          .filter((name) => !light.includes(name))
          .map((name) => `${file} -> ${name}`);
      },
    );
    expect(wrong).toEqual([]);
  });

  test('none adds types to others, which no import would show', () => {
    const augmenting = globSync('packages/engine/src/features/**/*.ts').filter(
      (file) => /^declare (?:module|global)/m.test(readFileSync(file, 'utf8')),
    );
    expect(augmenting).toEqual([]);
  });
});

/** Programs beside the service, and the folders whose files each imports. */
const programs = { bin: ['bin'], tools: ['tools', 'bin'] };

test.each(Object.entries(programs))(
  '%s imports no file above it',
  (folder, own) => {
    const wrong = [...graphOf(`${folder}/*.js`)].flatMap(([file, imported]) =>
      imported
        .filter((name) => /^[^@]+\/.+\.(?:ts|js)$/.test(name))
        .filter((name) => !own.includes(dirname(name)))
        .map((name) => `${file} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  },
);

test('neither files nor folders import each other in a circle', () => {
  const files = graphOf(
    'src/**/*.ts',
    'test/modules/*/*.ts',
    'packages/*/src/**/*.ts',
    '{bench,bin,tools}/*.{ts,js}',
  );
  const folders = new Map<string, string[]>();
  for (const [file, imported] of files) {
    const others = imported
      .filter((name) => name.endsWith('.ts') && dirname(name) !== dirname(file))
      .map(dirname);
    if (!['src', 'packages/engine/src'].includes(dirname(file)))
      folders.set(dirname(file), [
        ...(folders.get(dirname(file)) ?? []),
        ...others,
      ]);
  }
  expect([circleIn(files), circleIn(folders)]).toEqual([[], []]);
});

/** The nodes that reach themselves. */
function circleIn(graph: Map<string, string[]>): string[] {
  const reach = (from: string, seen = new Set<string>()) => {
    for (const to of graph.get(from) ?? [])
      if (!seen.has(to)) reach(to, seen.add(to));
    return seen;
  };
  return [...graph.keys()].filter((node) => reach(node).has(node)).sort();
}

// A folder of a package that has gone may still have its output.
test.each(globSync('packages/*/package.json').map(dirname))(
  '%s imports only what it declares',
  (path) => {
    const manifest = JSON.parse(readFileSync(`${path}/package.json`, 'utf8'));
    const declared = Object.keys({
      ...manifest.dependencies,
      ...manifest.peerDependencies,
    });
    const inTests = [
      ...declared,
      ...Object.keys(manifest.devDependencies),
      manifest.name,
    ];
    const wrong = [...graphOf(`${path}/{src,test}/**/*.ts`)].flatMap(
      ([file, imported]) => {
        const isTest = file.startsWith(`${path}/test/`);
        const own = (isTest ? ['test', 'dist'] : ['src']).map(
          (folder) => `${path}/${folder}/`,
        );
        const isAllowed = (name: string) =>
          /^node:/.test(name) ||
          own.some((folder) => name.startsWith(folder)) ||
          (isTest ? inTests : declared).some(
            (one) => name === one || name.startsWith(`${one}/`),
          );
        return imported
          .filter((name) => !isAllowed(name))
          .map((name) => `${file} -> ${name}`);
      },
    );
    expect(wrong).toEqual([]);
  },
);
