import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '../support/jest.ts';

const engine = 'packages/engine';

/** The names that an entry exports, as in `records Records`. */
function namesOf(entry: string, file: string) {
  const text = readFileSync(`${engine}/src/${file}.ts`, 'utf8');
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
  const declared = text.matchAll(
    /^export (?:async )?(?:function|const) (\w+)/gm,
  );
  return [
    ...listed.flatMap(([, names = '']) => names.split(',')),
    ...[...declared].map(([, name = '']) => name),
  ]
    .map((name) => name.replace(/^\s*type\s+/, '').trim())
    .filter(Boolean)
    .map((name) => `${entry} ${name}`);
}

test('packages/engine/exports.txt lists what the engine exports', () => {
  const { exports } = JSON.parse(
    readFileSync(`${engine}/package.json`, 'utf8'),
  ) as { exports: Record<string, string | { default: string }> };
  const entries = Object.entries(exports).flatMap(([entry, target]) => {
    if (typeof target === 'string') return [];
    const path = target.default.replace(/^\.\/dist\/|\.js$/g, '');
    return globSync(`${engine}/src/${path}.ts`).flatMap((file) => {
      const found = file.slice(`${engine}/src/`.length, -'.ts'.length);
      const [, name = ''] = /^features\/([^/]+)\/index$/.exec(found) ?? [];
      return namesOf(entry.replace('*', name), found);
    });
  });
  const listed = readFileSync(`${engine}/exports.txt`, 'utf8');
  expect(`${entries.sort().join('\n')}\n`).toBe(listed);
});

test('the store imports the engine by its exports only', () => {
  const wrong = globSync(['src/**/*.ts', 'migrations/*.ts']).flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/'([^'\n]*)'/g)]
      .map(([, name = '']) => name)
      .filter((name) => /^#|packages\/|^@animal-store\/(?!engine)/.test(name))
      .map((name) => `${file} -> ${name}`),
  );
  expect(wrong).toEqual([]);
});
