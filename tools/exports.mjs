// Writes packages/engine/exports.md: what the engine exports, with the
// docstrings. `npm run schema` runs this file, and a test compares the page.
// TypeDoc would need a second compiler: TypeScript 7 has no API for it.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const engine = join(import.meta.dirname, '../packages/engine');
const page = join(engine, 'exports.md');

/** The release of what has no `@since`. */
const first = '1.0.0';
const declared =
  /^(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?export (?:async )?(?:(class|interface|type|const|function) (\w+))/gm;
const listed = /^export (?:type )?\{([^}]*)\} from '(.*)';/gm;

/** @returns {string} the page in Markdown */
export function exportsPage() {
  const manifest = readFileSync(join(engine, 'package.json'), 'utf8');
  const entries = Object.entries(JSON.parse(manifest).exports)
    .filter(([, { default: path }]) => path)
    .map(([entry, { default: path }]) => chapterOf(entry, path));
  return `<!-- Written by \`npm run schema\` from docstrings: change them there. -->

# What the engine exports

A service imports nothing else of it.
${entries.join('')}`;
}

/**
 * @param {string} entry of the manifest, like `./features/*`
 * @param {string} path of what it loads
 */
function chapterOf(entry, path) {
  const sources = path.replace('./dist', 'src').replace(/js$/, 'ts');
  const files = globSync(sources, { cwd: engine });
  const rows = files.sort().flatMap((file) => rowsOf(file, entry));
  return `
## \`@animal-store/engine${entry.slice(1)}\`

| name | is a | since | |
|---|---|---|---|
${rows.join('')}`;
}

/** @param {string} file @param {string} entry */
function rowsOf(file, entry) {
  const names = namesIn(file).sort((a, b) => (a.name < b.name ? -1 : 1));
  const place = entry.includes('*') ? `${basename(dirname(file))}: ` : '';
  return names.map(({ name, kind, said, since }) => {
    const text = said.replaceAll('|', '\\|');
    return `| ${place}\`${name}\` | ${kind} | ${since} | ${text} |\n`;
  });
}

/** @param {string} file */
function namesIn(file) {
  const text = readFileSync(join(engine, file), 'utf8');
  const own = [...text.matchAll(declared)].map(([, doc, kind, name]) =>
    described(name, kind, doc),
  );
  const others = [...text.matchAll(listed)].flatMap(([, names, from]) => {
    const inFile = namesIn(join(dirname(file), from));
    return names
      .split(',')
      .map((name) => name.replace(/^\s*type\s+/, '').trim())
      .filter(Boolean)
      .map((name) => {
        const found = inFile.find((one) => one.name === name);
        if (!found) throw new Error(`${from} does not export ${name}.`);
        return found;
      });
  });
  return [...own, ...others];
}

/** @param {string} name @param {string} kind @param {string} [doc] */
function described(name, kind, doc = '') {
  const text = doc.replace(/^ ?\*+ ?/gm, '').trim();
  const [said = ''] = text.split(/^@/m);
  const [, since = first] = /^@since (\S+)/m.exec(text) ?? [];
  return { name, kind, said: said.replace(/\s+/g, ' ').trim(), since };
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(page, exportsPage());
