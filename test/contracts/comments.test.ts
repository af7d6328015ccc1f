import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '../support/jest.ts';

test('a tag of a comment begins its own line', () => {
  const torn = /^.*\*.*\w.*\s@(?:param|returns|throws|example|default)\b.*$/gm;
  const wrong = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts']).flatMap(
    (file) => {
      const text = readFileSync(file, 'utf8');
      return [...text.matchAll(torn)].map(([line]) => `${file}: ${line}`);
    },
  );
  expect(wrong).toEqual([]);
});
