// Writes the table of docs/configuration.md: all variables of the service, in
// the order of its configuration. `npm run schema` runs this file after the
// build, and a test compares the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { service } from '../dist/src/service.js';
import { allVariables } from '../packages/engine/dist/config/config.js';

const page = join(import.meta.dirname, '../docs/configuration.md');

/**
 * @param {object[]} modules
 * @returns {string} the page in Markdown
 */
export function variablesPage(modules) {
  const rows = rowsOf(allVariables([...service.features, ...modules]));
  return readFileSync(page, 'utf8').replace(
    /^(\|[-|]+\|\n)(?:\|.*\n)*/m,
    (_, head) => head + rows.join(''),
  );
}

/** @param {ReturnType<typeof allVariables>} variables */
function rowsOf(variables) {
  const all = Object.entries(variables).filter(([, { desc }]) => desc !== '');
  return all.map(([name, { desc, takes, default: value }]) => {
    // An empty list, too.
    const isNone = `${value ?? ''}` === '';
    const meaning = desc.replace(/\((\w+\.md)\)\.$/, '([more]($1)).');
    return `| \`${name}\` | ${takes} | ${isNone ? 'none' : `\`${value}\``} | ${meaning} |\n`;
  });
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(page, variablesPage(await service.modules()));
