import { once } from 'node:events';
import { createServer } from 'node:net';
import { Unavailable } from '#engine/errors.js';
import { startFailure } from '#engine/process/start-failure.js';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import { freePort, startAndFail } from '../../support/process.ts';
import { reasons } from '../support/start-errors.ts';

const database = databaseForEach();

test('an invalid configuration is refused with one message that lists every mistake', async () => {
  const env = {
    PORT: '70000',
    DATABASE_URL: 'mysql://shop@127.0.0.1/shop',
    BOOTSTRAP_API_KEY: 'short',
  };
  for (const reason of await reasons(env)) {
    const [title, ...mistakes] = reason.trim().split('\n');
    expect(title).toBe('animal-store: Configuration error:');
    expect(mistakes.map((line) => line.trim().split(' ', 1)[0]).sort()).toEqual(
      Object.keys(env).sort(),
    );
    expect(reason).not.toContain('short');
  }
});

test.each(['', 'OPERATIONS_'])(
  'a port that is taken is named in one line: %sPORT',
  async (which) => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as { port: number };
    const env = {
      ...database.env,
      [`${which}PORT`]: `${port}`,
      LOG_LEVEL: 'error',
    };
    const taken = `animal-store: Port ${port} on 127.0.0.1 is taken (${which}PORT, ${which}HOST).\n`;
    expect(await startAndFail(env)).toMatchObject({ code: 1, stderr: taken });
    holder.close();
    for (const name of ['[::1]', '127.0.0.1:4000', '*', '127.0.0.1 4000']) {
      const wrong = { ...env, [`${which}HOST`]: name };
      const stderr = `animal-store: ${name} is no address or name to listen on (${which}HOST).\n`;
      const { code, stderr: said } = await startAndFail(wrong);
      expect([code, said.replace(/ {2,}/g, ' ')]).toEqual([
        1,
        stderr.replace(/ {2,}/g, ' '),
      ]);
    }
    const nowhere = { ...env, [`${which}HOST`]: '203.0.113.77' };
    const stderr = `animal-store: 203.0.113.77 is no address of this machine (${which}HOST).\n`;
    expect(await startAndFail(nowhere)).toMatchObject({
      code: 1,
      stdout: '',
      stderr,
    });
  },
);

test.each(['127.0.0.1', 'localhost'])(
  'a database that cannot be reached on %s is named in one line',
  async (host) => {
    const DATABASE_URL = `postgres://shop:secret@${host}:${await freePort()}/shop`;
    for (const reason of await reasons({ DATABASE_URL })) {
      expect(reason).toMatch(
        /^animal-store: The database \(DATABASE_URL\) cannot be reached: .*ECONNREFUSED.*\n$/,
      );
      expect(reason).not.toContain('secret');
    }
  },
);

test('a database that is lost during a command is named with the reason, even if the error has another message for clients', () => {
  const cause = new Error('Connection terminated unexpectedly');
  const message =
    'The database (DATABASE_URL) cannot be reached: Connection terminated unexpectedly';
  expect(startFailure(new Unavailable('Try again.', cause))).toBe(message);
  expect(startFailure(new Unavailable('Try again.', cause))).toBe(message);
});
