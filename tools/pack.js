// `npm run pack [-- FOLDER]` packs the engine and the packages beside it into
// release/, or a folder. `npm run build` comes first.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { root } from '../bin/node.js';

/**
 * What the engine serves and this project has elsewhere. In its own folder it
 * would move `root` (config.ts) of running processes.
 */
const pages = ['web/assets', 'web/explorer/dist', 'dist/guide'];

const target = resolve(process.argv[2] ?? join(root, 'release'));
const staging = mkdtempSync(join(tmpdir(), 'animal-store-pack-'));
try {
  mkdirSync(target, { recursive: true });
  for (const name of packages()) pack(name);
} finally {
  rmSync(staging, { recursive: true });
}

function packages() {
  const entries = readdirSync(join(root, 'packages'), { withFileTypes: true });
  return entries.filter((one) => one.isDirectory()).map(({ name }) => name);
}

/** @param {string} name */
function pack(name) {
  const from = join(root, 'packages', name);
  const to = join(staging, name);
  for (const part of ['dist', 'README.md', 'LICENSE'])
    cpSync(join(from, part), join(to, part), { recursive: true });
  for (const part of name === 'engine' ? pages : [])
    cpSync(join(root, part), join(to, part), { recursive: true });
  const text = readFileSync(join(from, 'package.json'), 'utf8');
  const manifest = {
    ...JSON.parse(text),
    private: undefined,
    scripts: undefined,
    devDependencies: undefined,
  };
  writeFileSync(join(to, 'package.json'), JSON.stringify(manifest, null, 2));
  const args = ['pack', '--silent', '--pack-destination', target];
  const { status } = spawnSync('npm', args, { cwd: to, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${name} is not packed`);
}
