import { once } from 'node:events';
import { createServer } from 'node:net';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { startAndFail } from '../../../support/process.ts';

const database = databaseForEach();

test('an invalid configuration is refused once, not by each worker', async () => {
  const { code, stderr } = await startAndFail({ PORT: '70000', WORKERS: '3' });
  expect([code, stderr.match(/PORT must be/g)]).toEqual([1, ['PORT must be']]);
});

test.each(['', 'OPERATIONS_'])(
  'a port that is taken, or no address, is named in one line: %sPORT',
  async (which) => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as { port: number };
    const env = {
      ...database.env,
      [`${which}PORT`]: `${port}`,
      LOG_LEVEL: 'error',
    };
    expect(await startAndFail({ ...env, WORKERS: '3' })).toMatchObject({
      code: 1,
      stderr: `animal-store: Port ${port} on 127.0.0.1 is taken (${which}PORT, ${which}HOST).\n`,
    });
    holder.close();
    const wrong = { ...env, [`${which}HOST`]: '*', WORKERS: '2' };
    expect(await startAndFail(wrong)).toMatchObject({
      code: 1,
      stderr: `animal-store: * is no address or name to listen on (${which}HOST).\n`,
    });
  },
);
