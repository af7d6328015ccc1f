import { mock } from 'node:test';
import { Incident } from '@animal-store/log/incident';
import { afterEach, expect, test } from '@jest/globals';

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

/**
 * From now on only `pass` moves the clocks. The timers of Jest are not
 * affected, because they have begun before.
 */
function observe() {
  time = 0;
  performance.now = () => time;
  mock.timers.enable({ apis: ['setTimeout'] });
  const reports: unknown[] = [];
  const report = (fields: object) => void reports.push(fields);
  const log = { warn: report, info: report };
  const incident = new Incident(log, {
    begins: 'lost',
    ends: 'back',
    count: 'times',
  });
  return { reports, incident };
}

test('an incident is reported with the time until the first sign of its end, and the number of its occurrences', () => {
  const { reports, incident } = observe();
  incident.recovered();
  for (const code of ['first', 'second']) incident.occurred({ code });
  pass(3000);
  for (let sign = 1; sign <= 5; sign += 1) {
    incident.recovered();
    pass(199);
  }
  const first = { code: 'first' };
  expect(reports).toEqual([first]);
  pass(5);
  expect(reports).toEqual([first, { ms: 3000, times: 2 }]);
});

test('an incident that flaps is one incident, and an hour of flapping does not fill the log', () => {
  const { reports, incident } = observe();
  for (let second = 0; second < 3600; second += 2) {
    incident.occurred({ code: 'again' });
    incident.recovered();
    pass(2000);
  }
  // The incidents last one second at first, then two, four...
  expect(reports.length).toBeLessThan(10);
  pass(60_000);
  const { ms, times } = reports.at(-1) as { ms: number; times: number };
  expect(ms).toBeGreaterThan(3_500_000);
  expect(times).toBeGreaterThan(1700);
});
