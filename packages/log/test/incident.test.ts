import { mock } from 'node:test';
import type * as jest from '@jest/globals';
import { Incident } from '../src/incident.ts';

// `jest-light-runner` runs tests in plain Node.js, where Jest's functions are globals.
const { afterEach, expect, test } = globalThis as unknown as typeof jest;

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
  const incident = new Incident({
    onStart: ({ code }: { code?: string }) => told.push(code),
    onEnd: (milliseconds, times) => told.push([milliseconds, times]),
  });
  return { told, incident };
}

test('is told with how long it took until the first sign that it was over, and how often it was noticed', () => {
  const { told, incident } = watched();
  incident.recovered();
  for (const code of ['first', 'second']) incident.occurred({ code });
  pass(3000);
  for (let sign = 1; sign <= 5; sign += 1) {
    incident.recovered();
    pass(199);
  }
  expect(told).toEqual(['first']);
  pass(5);
  expect(told).toEqual(['first', [3000, 2]]);
});

test('is one as long as it flaps, and an hour of flapping does not fill the log', () => {
  const { told, incident } = watched();
  for (let second = 0; second < 3600; second += 2) {
    incident.occurred({ code: 'again' });
    incident.recovered();
    pass(2000);
  }
  // Of one second first, then of two, of four...
  expect(told.length).toBeLessThan(10);
  pass(60_000);
  const [milliseconds, times] = told.at(-1) as [number, number];
  expect(milliseconds).toBeGreaterThan(3_500_000);
  expect(times).toBeGreaterThan(1700);
});
