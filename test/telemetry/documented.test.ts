import { readFileSync } from 'node:fs';
import { expect, test } from '../support/jest.ts';
import { allMetrics } from '../support/metrics.ts';

test('docs/observe.md explains every metric and each of its labels, and no other', async () => {
  const rows = readFileSync('docs/observe.md', 'utf8')
    .split('\n')
    .filter((line) => /^\| `(?:http|db|animal_store|nodejs|v8js|process)_/.test(line));
  const documented = rows.flatMap((row) => {
    const [, names = '', type = '', labels = ''] = row.split('|').map((cell) => cell.trim());
    const words = (cell: string) => [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(([, word]) => word);
    return words(names).map((name) => [name, type, words(labels)]);
  });
  const known = (await allMetrics()).map(({ name, type, labels }) => [name, type, labels]);
  expect(documented.sort()).toEqual(known.sort());
});
