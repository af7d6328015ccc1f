import { loadConfig } from '#engine/config/config.js';
import { readNodes } from '#engine/features/read-nodes/index.js';
import { expect, test } from '../../support/jest.ts';

const address = 'postgres://127.0.0.1/shop';
const load = (urls: string) =>
  loadConfig({ DATABASE_URL: address, DATABASE_READ_URLS: urls }, [readNodes]);

test('nodes are a list of addresses, which are read as DATABASE_URL is', () => {
  const socket = 'postgres://u@/db?host=/run';
  expect(load(`${address}, ${socket}`).values).toMatchObject({
    DATABASE_READ_URLS: [address, 'postgres://u@localhost/db?host=/run'],
  });
  expect(() => load('postgres://a:secret@b;postgres://a:secret@c/s')).toThrow(
    'DATABASE_READ_URLS must be a postgres:// address',
  );
});

test('they have no effect without a primary', () =>
  expect(() =>
    loadConfig({ DATABASE_READ_URLS: address }, [readNodes]),
  ).toThrow('DATABASE_READ_URLS has no effect without DATABASE_URL'));
