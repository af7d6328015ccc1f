import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from '../support/jest.ts';

/** The table of docs/operate.md, in which work waits. */

const page = readFileSync('docs/operate.md', 'utf8');
const [, table = ''] = /^## Limits\n(.*?)^## /ms.exec(page) ?? [];
const rows = table
  .split('\n')
  .filter((line) => /^\| (?!waits)/.test(line))
  .map((line) => {
    const cells = line.split('|').slice(1, -1);
    const [waits, most, then, metric, code] = cells.map((cell) => cell.trim());
    return { waits, most, then, metric, code };
  });
const sources = globSync('packages/*/src/**/*.ts').map((file) => ({
  name: basename(file),
  text: readFileSync(file, 'utf8'),
}));
const textOf = (name: string) =>
  sources
    .filter((one) => one.name === name)
    .map(({ text }) => text)
    .join('');

test('each part in which work waits has a row', () => {
  const waits =
    /new (?:SharedBudget|FairQueue)\(|let pause\b|#turn\b|\bbacklog\b|\bmaxQueueSize\b|\bmaxPending\b/;
  const named = rows.map(({ code }) => code?.replaceAll('`', ''));
  const found = sources.filter(({ text }) => waits.test(text));
  expect(found.length).toBeGreaterThan(8);
  for (const { name } of found) expect(named).toContain(name);
});

test.each(rows)('$waits: its metric and its bound exist', (row) => {
  const { waits, most, then, metric, code } = row;
  expect([waits, most, then]).not.toContain('');
  const observed = readFileSync('docs/observe.md', 'utf8');
  for (const [name] of metric?.matchAll(/`\w+`/g) ?? [])
    expect(observed).toContain(name);
  const variables = `${most} ${then}`.matchAll(/`([A-Z_]{6,})`/g);
  const settings = readFileSync('.env.example', 'utf8');
  for (const [, name] of variables) {
    if (!/^OTEL|TRUST_PROXY/.test(`${name}`))
      expect(settings).toContain(`${name}=`);
  }
  expect(textOf(`${code?.replaceAll('`', '')}`)).not.toBe('');
});

test.each([
  ['serve.ts', 'backlog = 4096', '4096 | the system'],
  ['lifecycle.ts', 'maxUnanswered = 50', '| 50, in all'],
  ['lifecycle.ts', 'maxPipelined = 4096', 'in all 4096'],
  ['bodies.ts', '64 * bodyLimit', 'in all 64 times'],
  ['batches.ts', 'maxWaiting = 8192', '8192 for each'],
  ['database.ts', 'part = 3,', 'a third of `DATABASE_POOL_MAX`'],
  ['database.ts', 'part: 2,', 'half for transactions'],
  ['lifecycle.ts', 'mostUnread = 128 * 1024', '128 MiB'],
  [
    'idempotency.ts',
    'new SharedBudget(maxWaiting)',
    '`Idempotency-Key` | 8192; shares',
  ],
  ['log-output.ts', 'maxPending = 4 * 1024', '4 MiB'],
  ['traces.ts', '?? 2048', '2048 ('],
  ['sender.ts', 'mostSending = 1000', '1,000 at once'],
])('%s has `%s`, and the page says `%s`', (file, constant, words) => {
  expect(textOf(file)).toContain(constant);
  expect(table).toContain(words);
});
