import type { Socket } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { BackendConnection } from '../dist/connection.js';
import { message, startup } from './messages.ts';

/** How the bytes of one client become messages for the engine. */

function connection(...chunks: Buffer[]): BackendConnection {
  const one = new BackendConnection({} as Socket);
  for (const chunk of chunks) one.receive(chunk);
  return one;
}

/** A connection after its startup message. */
function started(...chunks: Buffer[]): BackendConnection {
  const one = connection(startup);
  one.take();
  for (const chunk of chunks) one.receive(chunk);
  return one;
}

const query = (sql: string) => message('Q', sql);
const parse = message('P', '', 'select 1', [0, 0]);
const sync = message('S');
const taken = (one: BackendConnection) => {
  const bytes = one.take();
  return bytes && Buffer.from(bytes);
};

describe('messages', () => {
  test('are taken when they are whole, and the first one alone', () => {
    const one = connection(startup.subarray(0, 5));
    expect(taken(one)).toBeUndefined();
    one.receive(Buffer.concat([startup.subarray(5), query('select 1')]));
    expect(taken(one)).toEqual(startup);
    expect(taken(one)).toEqual(query('select 1'));
    expect(taken(one)).toBeUndefined();
  });

  test('that are whole are taken together, and a part waits', () => {
    const whole = Buffer.concat([parse, sync]);
    const one = started(Buffer.concat([whole, parse.subarray(0, 7)]));
    expect(taken(one)).toEqual(whole);
    one.receive(parse.subarray(7));
    expect(taken(one)).toEqual(parse);
  });

  test('of a query belong together until its Sync', () => {
    const one = started(parse);
    one.take();
    expect(one.isAmidQuery).toBe(true);
    one.receive(sync);
    one.take();
    expect(one.isAmidQuery).toBe(false);
  });
});

describe('a connection is over', () => {
  test.each([
    ['a cancel request', Buffer.from([0, 0, 0, 16, 4, 210, 22, 46])],
    [
      'a startup message without parameters',
      Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]),
    ],
  ])('with %s', (_what, bytes) => {
    const one = connection(bytes);
    expect([taken(one), one.isOver]).toEqual([undefined, true]);
  });

  test.each([
    ['Terminate', message('X')],
    ['a message of no known type', message('z')],
    ['a length that is too short', Buffer.from([0x51, 0, 0, 0, 3])],
    ['COPY, which PGlite does not survive', query('copy pet from stdin')],
  ])('after %s; what came before is taken', (_what, bytes) => {
    const one = started(Buffer.concat([query('select 1'), bytes]));
    expect([taken(one), one.isOver]).toEqual([query('select 1'), true]);
  });
});

describe('settings of a session', () => {
  test.each([
    ["set search_path = ''", true],
    ['begin; SET LOCAL jit = off', true],
    ["select set_config('jit', 'off', false)", true],
    ['create temp table t ()', true],
    ["update pet set name = 'x'", false],
    ["select 'set jit = off'", false],
    ['select 1 -- ; set jit = off', false],
    ['select $text$; set jit = off$text$', false],
  ])('%s: %s', (sql, expected) => {
    const one = started(query(sql));
    one.take();
    expect(one.hasSettings).toBe(expected);
  });
});
