import { closeSync, openSync } from 'node:fs';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { Pipe } from '../../support/pipe.ts';
import { eventually, type ServerProcess } from '../../support/process.ts';
import { exchange } from '../../support/raw.ts';
import { linesOf, startWorkers } from '../../support/workers.ts';

const database = databaseForEach();
const start = (stdout: number) =>
  startWorkers({ ...database.env, BOOTSTRAP_API_KEY: 'a-key-for-these-tests-and-no-others' }, 3, stdout);

/** Requests on a connection of their own, for each of which there is a line of some 350 characters. */
async function ask(server: ServerProcess, count: number): Promise<void> {
  // A public route: under load others may be refused, with the connection.
  const one = `GET /livez HTTP/1.1\r\nHost: store.example\r\nX-Request-Id: asked\r\nUser-Agent: ${'x'.repeat(128)}\r\n\r\n`;
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  const answers = await exchange(server, one.repeat(count - 1) + last);
  expect(answers).toHaveLength(count);
}

/** Each of the workers is busy at the same time. */
const askAll = (server: ServerProcess) => Promise.all(Array.from({ length: 6 }, () => ask(server, 500)));

const drained = { code: 0, signal: null, stderr: '' };

test('lines that several workers write to one pipe are never torn, and none is lost', async () => {
  const pipe = new Pipe();
  const server = await start(pipe.writer);
  closeSync(pipe.writer);
  let text = '';
  const reading = setInterval(() => {
    text += pipe.read();
  }, 5);
  const rounds = 4;
  for (let round = 1; round <= rounds; round += 1) await askAll(server);
  expect(await server.stop()).toMatchObject(drained);
  clearInterval(reading);
  text += pipe.read();
  pipe.leave();
  const asked = linesOf(text).filter(({ reqId, msg }) => reqId === 'asked' && msg === 'answered');
  expect(asked).toHaveLength(rounds * 6 * 500);
  expect(new Set(asked.map(({ worker }) => worker))).toEqual(new Set([1, 2, 3]));
});

describe('workers whose standard output', () => {
  test('is on a full disk serve on, and end when told', async () => {
    const full = openSync('/dev/full', 'w');
    const server = await start(full);
    closeSync(full);
    await askAll(server);
    expect((await send(server.origin, { path: '/livez' })).status).toBe(200);
    expect(await server.stop()).toMatchObject(drained);
  });

  test('is a pipe whose reader has gone serve on, and end when told', async () => {
    const pipe = new Pipe();
    const server = await start(pipe.writer);
    closeSync(pipe.writer);
    await eventually(async () => pipe.read().includes('answered'));
    pipe.leave();
    for (let time = 1; time <= 2; time += 1) await askAll(server);
    expect(await server.stop()).toMatchObject(drained);
  });

  test('is a pipe whose reader stalls serve on; what is dropped is counted, line by line', async () => {
    const pipe = new Pipe();
    const server = await start(pipe.writer);
    closeSync(pipe.writer);
    let text = '';
    await eventually(async () => {
      text += pipe.read();
      return text.includes('answered');
    });
    const rounds = 6;
    for (let round = 1; round <= rounds; round += 1) await askAll(server);
    await eventually(async () => {
      text += pipe.read();
      return text.includes('"dropped"') && text.endsWith('\n');
    });
    const ended = server.stop();
    await eventually(async () => {
      text += pipe.read();
      return server.child.exitCode !== null;
    });
    expect(await ended).toMatchObject(drained);
    text += pipe.read();
    pipe.leave();
    const lines = linesOf(text);
    const asked = lines.filter(({ reqId, msg }) => reqId === 'asked' && msg === 'answered');
    const dropped = lines.reduce((sum, line) => sum + Number(line.dropped ?? 0), 0);
    expect(dropped).toBeGreaterThan(0);
    expect(asked.length + dropped).toBeGreaterThanOrEqual(rounds * 3000);
  });

  test('is a pipe whose reader stalls end when told', async () => {
    const pipe = new Pipe();
    const server = await start(pipe.writer);
    closeSync(pipe.writer);
    for (let time = 1; time <= 4; time += 1) await askAll(server);
    expect(await server.stop()).toMatchObject(drained);
    pipe.leave();
  });
});
