// `npm run pack [-- FOLDER]` packs the engine and the packages beside it into
// release/, or a folder. `npm run build` comes first.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { root } from '../bin/node.js';

/**
 * What the engine has from elsewhere in this project. `web` in its own folder
 * would move `root` (config.ts) of running processes.
 */
const parts = {
  bin: 'packages/engine/bin',
  'bin/bundle.js': 'tools/bundle.js',
  docs: 'docs',
  'exports.md': 'packages/engine/exports.md',
  // The modules that docs/add-a-module.md names.
  'modules/checkups': 'test/modules/checkups',
  'modules/money': 'test/modules/money',
  'modules/practice': 'test/modules/practice',
  'modules/toys': 'test/modules/toys',
  template: 'examples/own-service',
  'web/assets': 'web/assets',
  'web/explorer/dist': 'web/explorer/dist',
};
/** Images, sources of guides, and what is not of the example itself. */
const unpacked =
  /docs\/images|first-steps\.md|guide\.html|own-service\/(?:README\.md|node_modules|dist|\.data|package-lock)/;

/**
 * Its peer is one version of PGlite, and ours is a later one: npm would refuse
 * it, unless each service overrides that. So it comes in our package.
 */
const bundled = '@electric-sql/pglite-prepopulatedfs';

/** In Markdown: its text and its target. */
const link = /!?\[([^\]]*)\]\(([^)#\s]+)[^)]*\)/g;

const target = resolve(process.argv[2] ?? join(root, 'release'));
const staging = mkdtempSync(join(tmpdir(), 'animal-store-pack-'));
try {
  mkdirSync(target, { recursive: true });
  for (const name of packages()) stage(name);
  const args = ['pack', '--silent', '--pack-destination', target];
  const folders = packages().map((name) => `./${name}`);
  const { status } = spawnSync('npm', [...args, ...folders], {
    cwd: staging,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('The packages are not packed.');
} finally {
  rmSync(staging, { recursive: true });
}

function packages() {
  const entries = readdirSync(join(root, 'packages'), { withFileTypes: true });
  return entries.filter((one) => one.isDirectory()).map(({ name }) => name);
}

/** @param {string} name */
function stage(name) {
  const from = join(root, 'packages', name);
  const to = join(staging, name);
  for (const part of ['dist', 'README.md', 'LICENSE'])
    cpSync(join(from, part), join(to, part), { recursive: true });
  if (name === 'engine') addParts(to);
  const text = readFileSync(join(from, 'package.json'), 'utf8');
  const manifest = {
    ...JSON.parse(text),
    private: undefined,
    publishConfig: { access: 'public' },
    scripts: undefined,
    devDependencies: undefined,
  };
  if (manifest.dependencies?.[bundled]) {
    manifest.bundleDependencies = [bundled];
    bundle(to);
  }
  writeManifest(to, manifest);
}

/** @param {string} folder of the package */
function addParts(folder) {
  for (const [part, source] of Object.entries(parts))
    cpSync(join(root, source), join(folder, part), {
      recursive: true,
      filter: (path) => !unpacked.test(path),
    });
  const pages = globSync('{README.md,docs/*.md}', { cwd: folder });
  for (const page of pages.map((name) => join(folder, name)))
    writeFileSync(page, linked(page));
  for (const path of globSync(join(folder, 'modules/**/*.ts')))
    writeFileSync(path, withPublicNames(readFileSync(path, 'utf8')));
}

/**
 * A service imports the same from elsewhere.
 *
 * @param {string} text of a module
 */
function withPublicNames(text) {
  const resources = /'#engine\/(?:api\/resources|records\/select)[^']*'/g;
  return text
    .replace(resources, "'@animal-store/engine/resources'")
    .replace(/'#engine\/[^']*'/g, "'@animal-store/engine'");
}

/**
 * Links lead to where the package has their targets. The text of others stays.
 *
 * @param {string} page
 */
function linked(page) {
  const text = readFileSync(page, 'utf8')
    .replaceAll('](../packages/engine/exports.md', '](../exports.md')
    .replaceAll('](../test/modules/', '](../modules/')
    .replaceAll('](../examples/own-service/README', '](../template/AGENTS')
    .replaceAll('](../examples/own-service/', '](../template/')
    .replaceAll('](../../docs/', '](docs/');
  return text.replace(link, (all, words, target) => {
    const isElsewhere = /^\w+:/.test(target);
    const isHere = existsSync(join(dirname(page), target));
    return isElsewhere || isHere ? all : words;
  });
}

/** @param {string} folder of the package */
function bundle(folder) {
  const to = join(folder, 'node_modules', bundled);
  cpSync(join(root, 'node_modules', bundled), to, { recursive: true });
  const text = readFileSync(join(to, 'package.json'), 'utf8');
  writeManifest(to, { ...JSON.parse(text), peerDependencies: undefined });
}

/** @param {string} folder @param {object} manifest */
function writeManifest(folder, manifest) {
  const text = JSON.stringify(manifest, null, 2);
  writeFileSync(join(folder, 'package.json'), text);
}
