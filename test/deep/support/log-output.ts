import { closeSync } from 'node:fs';
import { expect } from '../../support/jest.ts';
import { eventually, type ServerProcess } from '../../support/process.ts';
import { linesOf } from '../../support/process-log.ts';
import { exchange } from '../../support/raw.ts';
import { Pipe } from './pipe.ts';

/**
 * Sends requests on so many connections at a time, one at least for each
 * worker. Each has a log line of 350 characters.
 */
export async function request(
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

export const drained = { code: 0, signal: null, stderr: '' };
const samples = (text: string) =>
  linesOf(text, 'answered').filter(({ reqId }) => reqId === 'sample');

/**
 * A server whose standard output is a pipe writes every line whole. When its
 * reader stalls, whole lines that do not fit are dropped and counted.
 */
export async function writesWholeLines(
  start: (stdout: number) => Promise<ServerProcess>,
  connections: number,
): Promise<void> {
  const pipe = new Pipe();
  const server = await start(pipe.writer).finally(() => closeSync(pipe.writer));
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
}
