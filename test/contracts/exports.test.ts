import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '../support/jest.ts';

test('packages/engine/exports.md is what the engine exports, and says what each is', async () => {
  const { exportsPage } = await import(resolve('tools/exports.mjs'));
  const page: string = exportsPage();
  expect(page).toBe(readFileSync('packages/engine/exports.md', 'utf8'));
  const rows = page.split('\n').filter((line) => line.includes(' | 1.'));
  expect(rows.length).toBeGreaterThan(80);
  expect(rows.filter((row) => row.endsWith('|  |'))).toEqual([]);
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
