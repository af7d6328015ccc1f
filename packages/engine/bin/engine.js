#!/usr/bin/env node
// `npx @animal-store/engine new FOLDER [RESOURCE]` writes a service: a copy of
// examples/own-service with other names. `npx @animal-store/engine bundle`
// bundles the service of this folder.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

const [major] = process.versions.node.split('.');
if (Number(major) < 24) refuse('a service needs Node.js 24: it runs types');
const [command, folder = '', resource = 'Book', ...more] =
  process.argv.slice(2);
if (command === 'bundle') {
  // In the packed engine (tools/pack.js).
  const { bundle } = await import('./bundle.js');
  await bundle(process.cwd(), ['src/main.ts', 'src/cli.ts']);
  process.exit();
}
const target = resolve(folder);
const name = basename(target);
const manifest = join(target, 'package.json');

if (command !== 'new' || !folder || more.length > 0)
  refuse('usage: new FOLDER [RESOURCE], or bundle', 2);
if (!/^[a-z][a-z\d-]*$/.test(name))
  refuse(`the folder needs a name like own-service, not "${name}"`);
if (!/^[A-Z][a-z]+$/.test(resource))
  refuse(`a resource has a name like Book, not "${resource}"`);
if (existsSync(join(target, 'src'))) refuse(`${folder} has a service already`);

const noun = resource.toLowerCase();
const plural = `${noun}s`.replace(/([^aeiou])ys$/, '$1ies');
const words = name.replaceAll('-', ' ');
/** What the template says, and what this service says. */
const names = {
  'own-service': name,
  'Own service': words.charAt(0).toUpperCase() + words.slice(1),
  Books: plural.charAt(0).toUpperCase() + plural.slice(1),
  books: plural,
  Book: resource,
  book: noun,
};
const known = new RegExp(Object.keys(names).join('|'), 'g');
/** @param {string} text */
const renamed = (text) => text.replace(known, (found) => names[found]);

// `npm install TARBALLS` has written one.
const { dependencies = {} } = existsSync(manifest) ? read(manifest) : {};
const template = join(import.meta.dirname, '../template');
const options = { recursive: true, withFileTypes: true };
for (const file of readdirSync(template, options)) {
  if (!file.isFile()) continue;
  const from = join(file.parentPath, file.name);
  const to = join(target, renamed(from.slice(template.length)));
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, renamed(readFileSync(from, 'utf8')));
}
const own = read(manifest);
Object.assign(own.dependencies, dependencies);
writeFileSync(manifest, `${JSON.stringify(own, null, 2)}\n`);
writeFileSync(
  join(target, '.gitignore'),
  'node_modules/\ndist/\n.data/\n.env\n',
);
const go = target === process.cwd() ? '' : `cd ${folder} && `;
process.stdout.write(
  `${name} is written. Next: ${go}npm install && npm test && npm start\n`,
);

/** @param {string} path */
function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** @param {string} why */
function refuse(why, code = 1) {
  process.stderr.write(`${why}\n`);
  process.exit(code);
}
