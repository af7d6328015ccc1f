import { closeSync, openSync } from 'node:fs';
import { databaseForEach } from '../../support/fixtures.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import { eventually, type ServerProcess } from '../../support/process.ts';
import { exchange } from '../../support/raw.ts';
import { linesOf, startWorkers } from '../../support/workers.ts';
import { Pipe } from './pipe.ts';

/** A log that cannot be written affects neither requests nor the shutdown. */
const database = databaseForEach();

/**
 * Sends requests on so many connections at a time, one at least for each
 * worker. Each has a log line of 350 characters.
 */
async function request(
  server: ServerProcess,
  count: number,
  connections: number,
): Promise<void> {
  // A public route, because under load others may be refused and their
  // connection closed.
  const one = `GET /livez HTTP/1.1\r\nHost: store.example\r\nX-Request-Id: sample\r\nUser-Agent: ${'x'.repeat(128)}\r\n\r\n`;
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  // A connection with more unanswered requests is closed.
  const atOnce = 50;
  const bytes = one.repeat(atOnce - 1) + last;
  for (let sent = 0; sent < count; sent += connections * atOnce) {
    const responses = await Promise.all(
      Array.from({ length: connections }, () => exchange(server, bytes)),
    );
    expect(responses.flat().map(({ status }) => status)).toEqual(
      Array(connections * atOnce).fill(200),
    );
  }
}

const drained = { code: 0, signal: null, stderr: '' };
const samples = (text: string) =>
  linesOf(text, 'answered').filter(({ reqId }) => reqId === 'sample');

describe.each([
  ['a server', (stdout: number) => startMeasured(database.env, { stdout }), 1],
  [
    'several workers',
    (stdout: number) => startWorkers(database.env, 2, stdout),
    4,
  ],
] as const)('%s whose standard output', (_name, start, connections) => {
  test('is a pipe writes every line whole; when its reader stalls, whole lines that do not fit are dropped and counted', async () => {
    const pipe = new Pipe();
    const server = await start(pipe.writer).finally(() =>
      closeSync(pipe.writer),
    );
    const round = () => request(server, 3000, connections);
    let text = '';
    const readUntil = (isEnough: () => boolean) =>
      eventually(async () => {
        text += pipe.read();
        return isEnough();
      });
    let isOver = false;
    await Promise.all([
      round().finally(() => (isOver = true)),
      readUntil(() => isOver),
    ]);
    await readUntil(() => samples(text).length === 3000);
    expect(new Set(samples(text).map(({ worker }) => worker))).toEqual(
      new Set(connections > 1 ? [1, 2] : [undefined]),
    );
    expect(text).not.toContain('"dropped"');

    const rounds = 6;
    for (let time = 1; time <= rounds; time += 1) await round();
    await readUntil(() => text.includes('"dropped"') && text.endsWith('\n'));
    const ended = server.stop();
    await readUntil(() => server.child.exitCode !== null);
    expect(await ended).toMatchObject(drained);
    text += pipe.read();
    pipe.leave();
    const notes = linesOf(text).filter(({ dropped }) => dropped !== undefined);
    for (const note of notes)
      expect(note).toMatchObject({
        level: 40,
        msg: 'log lines could not be written',
      });
    const dropped = notes.reduce((sum, note) => sum + Number(note.dropped), 0);
    expect(dropped).toBeGreaterThan(0);
    // Workers count lines of other requests, too.
    const all = samples(text).length - 3000 + dropped;
    if (connections === 1)
      expect([notes.length, all]).toEqual([1, rounds * 3000]);
    else expect(all).toBeGreaterThanOrEqual(rounds * 3000);
  });
});

/** The parent of workers uses the same output. */
test.each([
  'a full disk',
  'a pipe whose reader has gone',
  'a pipe whose reader stalls',
])(
  'a server whose standard output is %s continues to serve, and ends with 0 at SIGTERM',
  async (output) => {
    const pipe = new Pipe();
    const stdout =
      output === 'a full disk' ? openSync('/dev/full', 'w') : pipe.writer;
    const server = await startMeasured(database.env, { stdout });
    closeSync(stdout);
    if (output.endsWith('gone')) {
      await eventually(async () => pipe.read().includes('answered'));
      pipe.leave();
    }
    await request(server, 600, 1);
    expect(await server.stop()).toMatchObject(drained);
  },
);
