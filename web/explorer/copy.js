// Copies GraphiQL's own build, and what it needs, from npm into a folder of
// `dist`, whose name is a hash of its files. The folder is committed.
// `npm run explorer` writes it. GraphiQL 4 is the last release with such a
// build; 5 has another editor, with which the page loads three times as much.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Files of packages. */
const sources = {
  'react.js': ['react@18.3.1', 'umd/react.production.min.js'],
  'react-dom.js': ['react-dom@18.3.1', 'umd/react-dom.production.min.js'],
  'graphiql.js': ['graphiql@4.1.2', 'graphiql.min.js'],
  'graphiql.css': ['graphiql@4.1.2', 'graphiql.min.css'],
  'builder.js': ['@graphiql/plugin-explorer@4.0.6', 'dist/index.umd.js'],
  'builder.css': ['@graphiql/plugin-explorer@4.0.6', 'dist/style.css'],
  'LICENSE.graphiql.txt': ['graphiql@4.1.2', 'LICENSE'],
  'LICENSE.react.txt': ['react@18.3.1', 'LICENSE'],
};

/** Of the packages' archives, as npm names them. */
const integrity = {
  'react@18.3.1':
    'sha512-wS+hAgJShR0KhEvPJArfuPVN1+Hz1t0Y6n5jLrGQbkb4urgPE/0Rve+1kMB1v/oWgHgm4WIcV+i7F2pTVj+2iQ==',
  'react-dom@18.3.1':
    'sha512-5m4nQKp+rZRb09LNH59GM4BxTh9251/ylbKIbpe7TpGxfJ+9kv6BLkLBXIjjspbgbnIBNqlI23tRnTWT0snUIw==',
  'graphiql@4.1.2':
    'sha512-rNlzQIAzm6i2KBXmVQWBgLvt0TloxFVB2d18bukvdsvjEuFDHsKx5IVOomL1W1o5WW+tE54+ioHb2AEKzO2cUg==',
  '@graphiql/plugin-explorer@4.0.6':
    'sha512-TppIi92YPER3v70nlF01KTQrq9AiYqkZicSd1hpU7aqGmbqw/pLwBNLUEcfENBoJtw574Qxjswb01+GaYK0Tzw==',
};

const scratch = mkdtempSync(join(tmpdir(), 'animal-store-explorer-'));
const bundles = join(import.meta.dirname, 'dist');
try {
  const archives = Object.fromEntries(
    Object.keys(integrity).map((name) => [name, archiveOf(name)]),
  );
  const names = Object.keys(sources).sort();
  const files = names.map((name) => {
    const [from, path] = sources[name];
    return [name, withoutExtras(name, fileIn(archives[from], path))];
  });
  const folder = join(bundles, nameOf(files));
  rmSync(bundles, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of files)
    writeFileSync(join(folder, name), content);
} finally {
  rmSync(scratch, { recursive: true });
}

/** @throws Error for other content than that which was committed */
function archiveOf(name) {
  const packing = ['pack', name, '--json', '--pack-destination', scratch];
  const [{ filename }] = JSON.parse(execFileSync('npm', packing));
  const archive = join(scratch, filename);
  const hash = createHash('sha512').update(readFileSync(archive));
  if (`sha512-${hash.digest('base64')}` !== integrity[name])
    throw new Error(`${name} is not the package that is known here.`);
  return archive;
}

function fileIn(archive, path) {
  const extract = ['-xzOf', archive, `package/${path}`];
  return execFileSync('tar', extract, { maxBuffer: 2 ** 25 }).toString();
}

/** Fonts are two fifths of what the page would load; all pages have the system's. */
function withoutExtras(name, text) {
  const plain = text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
  if (!name.endsWith('.css')) return plain;
  return plain.replace(/@font-face\s*\{[^}]*\}/g, '');
}

/**
 * A hash of the files. Browsers keep them for ever, so other files need another
 * address.
 */
function nameOf(files) {
  const hash = createHash('sha256');
  for (const [name, content] of files) hash.update(name).update(content);
  return hash.digest('hex').slice(0, 16);
}
