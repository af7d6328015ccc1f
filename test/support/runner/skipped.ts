import { relative } from 'node:path';

interface Result {
  testFilePath: string;
  testResults: { ancestorTitles: string[]; title: string; status: string }[];
}

/**
 * A reporter for Jest. After a run it prints the titles of skipped groups and
 * skipped single tests, which say why.
 */
export default class Skipped {
  readonly #isNamed: boolean;

  /** With `-t NAME` all others are skipped. */
  constructor({ testNamePattern }: { testNamePattern?: string }) {
    this.#isNamed = Boolean(testNamePattern);
  }

  onRunComplete(_: unknown, { testResults }: { testResults: Result[] }): void {
    if (this.#isNamed) return;
    const counts = new Map<string, number>();
    for (const { testFilePath, testResults: tests } of testResults) {
      const file = relative('dist/test', testFilePath).replace(
        /\.test\.js$/,
        '',
      );
      for (const { ancestorTitles, title, status } of tests) {
        if (status !== 'pending') continue;
        const where = `${file}: ${ancestorTitles[0] ?? title}`;
        counts.set(where, (counts.get(where) ?? 0) + 1);
      }
    }
    if (counts.size === 0) return;
    const lines = [...counts].map(
      ([where, count]) => `  ${count} in ${where}\n`,
    );
    process.stderr.write(`\nSkipped:\n${lines.join('')}`);
  }
}
