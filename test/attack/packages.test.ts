import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

/** What is installed: exactly what the lock file says, and nothing runs while it is. */
const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const manifest = read('package.json');
const lock = read('package-lock.json');

/** Packages of other platforms are in the lock file by name and version alone where the registry did not offer them. */
const isForElsewhere = ({ optional, os, cpu, libc }: Package) => optional === true && (os ?? cpu ?? libc) !== undefined;

type Package = {
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  version?: string;
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  link?: boolean;
  dev?: boolean;
};
const packages = Object.entries(lock.packages as Record<string, Package>).filter(([path]) =>
  path.includes('node_modules/'),
);
const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

test('only packages named in allowScripts have install scripts', () => {
  const withScripts = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path));
  expect(withScripts.filter((name) => !(name in manifest.allowScripts))).toEqual([]);
});

test('allowScripts names nothing that is not installed, and allows only what the service cannot do without', () => {
  const installed = new Set(packages.map(([path]) => nameOf(path)));
  expect(Object.keys(manifest.allowScripts).filter((name) => !installed.has(name))).toEqual([]);
  expect(Object.entries(manifest.allowScripts).filter(([, allowed]) => allowed)).toEqual([['node', true]]);
});

test('every dependency has an exact version, here and in every workspace', () => {
  const manifests = [manifest, ...(manifest.workspaces ?? []).map((folder: string) => read(`${folder}/package.json`))];
  for (const { dependencies = {}, devDependencies = {}, overrides = {}, peerDependencies = {} } of manifests) {
    const ranges = Object.entries<string>({ ...dependencies, ...devDependencies, ...overrides, ...peerDependencies });
    expect(ranges.filter(([, range]) => !/^(?:npm:@?[\w./-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range))).toEqual([]);
  }
});

test('the lock file is of this manifest, and every package in it is pinned by its content and comes from a registry', () => {
  const root = lock.packages[''];
  expect(root.dependencies).toEqual(manifest.dependencies);
  expect(root.devDependencies).toEqual(manifest.devDependencies);
  const loose = packages.filter(([path, entry]) => {
    const { link, version, integrity, resolved } = entry;
    if (isForElsewhere(entry) && !integrity) return !/^\d+\.\d+\.\d+/.test(version ?? '');
    if (link) return !(manifest.workspaces ?? []).some((folder: string) => resolved === folder);
    const isPinned = /^\d+\.\d+\.\d+/.test(version ?? '') && /^sha(?:256|384|512)-/.test(integrity ?? '');
    return !isPinned || (resolved !== undefined && !/^https:\/\//.test(resolved)) || path.includes('..');
  });
  expect(loose.map(([path]) => path)).toEqual([]);
});
