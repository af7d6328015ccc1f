import dns from 'node:dns';
import { loadConfig } from '#engine/config/config.js';
import type { PostgresServer } from '#engine/database/postgres-server.js';
import {
  isWorthAnotherServer,
  Replicas,
} from '#engine/features/read-nodes/replicas.js';
import { afterEach, expect, test } from '../../support/jest.ts';

const { lookup } = dns;
afterEach(() => {
  dns.lookup = lookup;
});

test('a read node that no address of its host answers is not used, and the log has the reasons', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({
    address,
    family: 4,
  }));
  dns.lookup = ((
    _host: string,
    _options: object,
    found: (error: null, all: object[]) => void,
  ) => found(null, addresses)) as unknown as typeof lookup;
  const position = {
    isReplica: false,
    system: '7',
    database: '5',
    timeline: 1,
    bytes: 0,
    lag: 0,
  };
  const primary = {
    inOneSession: async () => [[['one']], [[JSON.stringify(position)]]],
  } as unknown as PostgresServer;
  const lines: object[] = [];
  const note = (fields: object, msg: string) => lines.push({ ...fields, msg });
  const { database } = loadConfig({
    DATABASE_URL: 'postgres://store@primary.example/store',
  });
  const url = 'postgres://store@node.example:1/store';
  const log = { info: note, warn: note };
  const options = { ...database, maxLag: 1000, log };
  const replicas = new Replicas([url], primary, options, () => undefined);
  const read = () => replicas.read({ name: 'one', text: 'select 1' }, []);

  expect(await read()).toEqual([['one']]);
  while (lines.length === 0) {
    await read();
    await new Promise(setImmediate);
  }
  const why = addresses
    .map(({ address }) => `connect ECONNREFUSED ${address}:1`)
    .join('; ');
  expect(lines).toEqual([
    { node: 'node.example:1', why, msg: 'a read node is not used' },
  ]);
  await replicas.close();
});

const thrown = (code: string) =>
  Object.assign(new Error('a failure'), { code });

test.each([
  ['the connection is lost', thrown('ECONNRESET'), true],
  ['the server shuts down', thrown('57P01'), true],
  ['the statement took too long', thrown('57014'), false],
  ['the server falls silent', thrown('ETIMEDOUT'), false],
  ['the data are at fault', thrown('22P02'), false],
])(
  'whether a failed read is worth another server: %s',
  (_, error, expected) => {
    expect(isWorthAnotherServer(error)).toBe(expected);
  },
);
