import {
  duration,
  integerBetween,
  momentFrom,
  Progress,
  printable,
  show,
  table,
} from '#engine/commands/program.js';
import { expect, test } from '../support/jest.ts';

test('a result is one line of JSON, or its text', () => {
  const written: string[] = [];
  const stream = {
    write: (text: string) => written.push(text) > 0,
  } as unknown as NodeJS.WritableStream;
  show({ id: 1 }, { json: true }, 'item 1', stream);
  show({ id: 1 }, {}, 'item 1', stream);
  expect(written).toEqual(['{"id":1}\n', 'item 1\n']);
});

test('a table is aligned, and a terminal interprets nothing in it', () => {
  const rows = [
    { id: 1, name: 'Rex', at: new Date('2026-01-02T03:04:05.678Z') },
    { id: 20, name: 'a\x1b[2Jb', at: null },
  ];
  expect(table(rows, 'none')).toBe(
    'id  name    at\n1   Rex     2026-01-02 03:04:05Z\n20  a?[2Jb  -',
  );
  expect(table([], 'none')).toBe('none');
  expect(printable('a\nb')).toBe('a?b');
});

test('a whole number has bounds', () => {
  expect(integerBetween(1, 10)('10')).toBe(10);
  for (const text of ['0', '11', '1.0', '-1', '', '0x1', '1e1'])
    expect(() => integerBetween(1, 10)(text)).toThrow('between 1 and 10');
});

test.each([
  ['90d', 7_776_000_000],
  ['12h', 43_200_000],
  ['30m', 1_800_000],
  ['10s', 10_000],
  ['0', 0],
])('%s is %i ms', (text, milliseconds) => {
  expect(duration(text)).toBe(milliseconds);
});

test('a moment is in the future, and exists', () => {
  expect(momentFrom('9999-12-31')).toEqual(new Date('9999-12-31'));
  expect(momentFrom('1d').getTime()).toBeGreaterThan(Date.now());
  expect(() => momentFrom('9999-02-30')).toThrow('There is no such date.');
  expect(() => momentFrom('2020-01-01')).toThrow('It must be in the future.');
  expect(() => momentFrom('tomorrow')).toThrow('It must be a time like 90d');
});

test('a progress is written to a terminal ten times a second at most', () => {
  const written: string[] = [];
  const stream = {
    isTTY: true,
    write: (text: string) => written.push(text) > 0,
  } as unknown as NodeJS.WriteStream;
  const { now } = performance;
  let time = 0;
  performance.now = () => time;
  try {
    const progress = new Progress(stream);
    for (const [ms, done] of [
      [1000, 500],
      [50, 600],
      [50, 700],
    ] as const) {
      time += ms;
      progress.show('pet', done);
    }
  } finally {
    performance.now = now;
  }
  const line = (text: string) => `\r\x1b[2K${text}\r`;
  expect(written).toEqual(['pet: 500', 'pet: 700'].map(line));
});
