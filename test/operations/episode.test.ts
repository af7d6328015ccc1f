import { mock } from 'node:test';
import { Episode } from '../../src/runtime/log/episode.ts';
import { afterEach, expect, test } from '../support/jest.ts';

const { now } = performance;
let time: number;
afterEach(() => {
  mock.timers.reset();
  performance.now = now;
});

function pass(milliseconds: number): void {
  time += milliseconds;
  mock.timers.tick(milliseconds);
}

/** From now on only `pass` moves the clocks: not those of Jest, which have begun before. */
function watched() {
  time = 0;
  performance.now = () => time;
  mock.timers.enable({ apis: ['setTimeout'] });
  const told: unknown[] = [];
  const episode = new Episode({
    began: ({ code }: { code?: string }) => told.push(code),
    ended: (milliseconds, times) => told.push([milliseconds, times]),
  });
  return { told, episode };
}

test('is told with how long it took until the first sign that it was over, and how often it was noticed', () => {
  const { told, episode } = watched();
  episode.passed();
  for (const code of ['first', 'second']) episode.noticed({ code });
  pass(3000);
  for (let sign = 1; sign <= 5; sign += 1) {
    episode.passed();
    pass(199);
  }
  expect(told).toEqual(['first']);
  pass(5);
  expect(told).toEqual(['first', [3000, 2]]);
});

test('is one as long as it flaps, and an hour of flapping does not fill the log', () => {
  const { told, episode } = watched();
  for (let second = 0; second < 3600; second += 2) {
    episode.noticed({ code: 'again' });
    episode.passed();
    pass(2000);
  }
  // Of one second first, then of two, of four...
  expect(told.length).toBeLessThan(10);
  pass(60_000);
  const [milliseconds, times] = told.at(-1) as [number, number];
  expect(milliseconds).toBeGreaterThan(3_500_000);
  expect(times).toBeGreaterThan(1700);
});
