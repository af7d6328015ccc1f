import { closeSync, openSync } from 'node:fs';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { Pipe } from '../../support/pipe.ts';
import { type Env, eventually, type ServerProcess, startServer } from '../../support/process.ts';
import { exchange } from '../../support/raw.ts';

const database = databaseForEach();
let env: Env;
beforeEach(() => {
  // With a key of the operator's no welcome is printed.
  env = { ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' };
});

/** Sends requests, one after the other on one connection, for each of which there is a line of some 350 characters. */
async function ask(server: ServerProcess, count: number): Promise<void> {
  // A public route: under load others may be refused, with the connection.
  const one = `GET /livez HTTP/1.1\r\nHost: store.example\r\nX-Request-Id: asked\r\nUser-Agent: ${'x'.repeat(128)}\r\n\r\n`;
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  const answers = await exchange(server, one.repeat(count - 1) + last);
  expect(answers.map(({ status }) => status)).toEqual(Array(count).fill(200));
}

async function isAlive({ origin }: ServerProcess): Promise<boolean> {
  return (await send(origin, { path: '/livez' })).status === 200;
}

const drained = { code: 0, signal: null, stderr: '' };

describe('a server whose standard output', () => {
  test('is on a full disk serves on, and ends when told', async () => {
    const full = openSync('/dev/full', 'w');
    const server = await startServer(env, { stdout: full });
    closeSync(full);
    for (let time = 1; time <= 5; time += 1) {
      await ask(server, 1000);
      expect(await isAlive(server)).toBe(true);
    }
    expect(await server.stop()).toMatchObject(drained);
  });

  test('is a pipe whose reader has gone serves on, and ends when told', async () => {
    const pipe = new Pipe();
    const server = await startServer(env, { stdout: pipe.writer });
    closeSync(pipe.writer);
    await eventually(async () => pipe.read().includes('answered'));
    pipe.leave();
    for (let time = 1; time <= 5; time += 1) {
      await ask(server, 1000);
      expect(await isAlive(server)).toBe(true);
    }
    expect(await server.stop()).toMatchObject(drained);
  });

  test('is a pipe whose reader stalls ends when told', async () => {
    const pipe = new Pipe();
    const server = await startServer(env, { stdout: pipe.writer });
    closeSync(pipe.writer);
    await ask(server, 2000);
    expect(await isAlive(server)).toBe(true);
    expect(await server.stop()).toMatchObject(drained);
    pipe.leave();
  });

  test('is a pipe whose reader stalls drops what it cannot keep, and counts it', async () => {
    const pipe = new Pipe();
    const server = await startServer(env, { stdout: pipe.writer });
    closeSync(pipe.writer);
    let text = '';
    await eventually(async () => {
      text += pipe.read();
      return text.includes('answered');
    });
    const rounds = 15;
    for (let round = 1; round <= rounds; round += 1) await ask(server, 1000);

    await eventually(async () => {
      text += pipe.read();
      return text.includes('"dropped"') && text.endsWith('\n');
    });
    pipe.leave();
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const asked = lines.filter(({ reqId, msg }) => reqId === 'asked' && msg === 'answered');
    const notes = lines.filter(({ dropped }) => dropped !== undefined);
    const msg = 'log lines could not be written';
    expect(notes).toEqual([{ level: 40, time: expect.any(Number), dropped: expect.any(Number), msg }]);
    expect(notes[0].dropped + asked.length).toBe(1000 * rounds);
    expect(notes[0].dropped).toBeGreaterThan(0);
  });
});
