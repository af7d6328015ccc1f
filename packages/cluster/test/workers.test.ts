import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

interface Line {
  message: string;
  worker?: number;
  workerPid?: number;
  address?: string;
  isClean?: boolean;
}

/** Starts program.ts and collects its messages. */
function start() {
  const parent = fork(join(import.meta.dirname, 'program.ts'));
  const lines: Line[] = [];
  parent.on('message', (line: Line) => lines.push(line));
  /** Waits for a number of lines with this message. @returns the last one */
  const received = async (message: string, times = 1): Promise<Line> => {
    for (;;) {
      const found = lines.filter((line) => line.message === message);
      if (found.length >= times) return found[times - 1] as Line;
      await once(parent, 'message');
    }
  };
  return { parent, lines, received };
}

test('workers take connections in turn, know how many are up and the shared value, and are replaced when they die', async () => {
  const { parent, received } = start();
  const { address = '' } = await received('listening');
  const fetchState = async () =>
    (await (await fetch(address)).json()) as Record<string, unknown>;
  /** Waits until both workers respond with these members. */
  const both = async (members: object) => {
    for (const seen = new Set(); seen.size < 2; ) {
      const { number, ...state } = await fetchState();
      if (
        Object.entries(members).every(([name, value]) => state[name] === value)
      )
        seen.add(number);
    }
  };
  const { workerPid: victim = 0 } = await received('worker ready', 2);
  await both({ up: 2, count: 2, hasStarted: true, shared: 'first' });

  parent.send({ share: 'second' });
  await both({ shared: 'second' });

  process.kill(victim, 'SIGKILL');
  expect(await received('worker died')).toMatchObject({
    workerPid: victim,
    signal: 'SIGKILL',
    restartInMs: 100,
  });
  expect((await received('worker ready', 3)).workerPid).not.toBe(victim);
  await both({ up: 2, shared: 'second' });

  parent.send({ ask: true });
  expect(await received('answer')).toEqual({
    message: 'answer',
    shared: 'second',
  });

  parent.send({});
  expect(await received('drained')).toMatchObject({ isClean: true });
  await expect(fetch(address)).rejects.toThrow();
});

test('a parent that drains before a worker listens waits for none', async () => {
  const { parent, received } = start();
  await received('worker started');
  parent.send({});
  await received('stopped before');
  expect(await received('drained')).toMatchObject({ isClean: true });
});
