import { once } from 'node:events';
import { connect } from 'node:net';
import { follow } from '../../support/events.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually, handledBy, startServer } from '../../support/process.ts';
import { linesOf } from '../../support/process-log.ts';
import { rest } from '../../support/rest.ts';
import {
  create,
  drained,
  environment,
  followers,
} from '../support/draining.ts';

const database = databaseForEach();
const env = () => environment(database);

test.each(['SIGTERM', 'SIGHUP'] as const)(
  'after %s and its delay a server closes idle connections, even those without a request, and ends with 0',
  async (signal) => {
    const server = await startServer({ ...env(), DRAIN_DELAY_MS: '100' });
    const others = ['SIGINT', 'SIGQUIT', 'SIGUSR2'] satisfies NodeJS.Signals[];
    expect(handledBy(server, others)).toEqual(others);
    // Browsers open such a connection in advance, and undici after an aborted
    // subscription.
    const unused = connect(Number(new URL(server.origin).port), '127.0.0.1');
    await once(unused, 'connect');
    const response = await rest(server, '/v1/pets');
    expect([response.status, response.headers.connection]).toEqual([
      200,
      'keep-alive',
    ]);
    // A second signal does not shorten the drain.
    server.child.kill(signal);
    const ended = await server.stop(signal);
    expect(ended).toMatchObject({
      ...drained,
      stdout: expect.stringContaining('"draining"'),
    });
    unused.destroy();
  },
);

describe('live lists', () => {
  test('are cut at SIGTERM, even a thousand of them, and the server ends', async () => {
    const server = await startServer({
      ...env(),
      SUBSCRIPTIONS_PER_KEY: '1000',
      LOG_LEVEL: 'warn',
    });
    const streams = await followers(server, 1000);
    await create(server, 'Rex');
    for (const stream of streams) await stream.until(1);
    expect(await server.stop()).toMatchObject(drained);
    expect(
      new Set(await Promise.all(streams.map(({ ended }) => ended))),
    ).toEqual(new Set(['cut']));
    expect(streams.every(({ text }) => !text.includes('event: complete'))).toBe(
      true,
    );
  });

  test('each have a log line; a draining server is not ready and accepts none, but serves open lists and other requests', async () => {
    const server = await startServer({ ...env(), DRAIN_DELAY_MS: '600000' });
    const [open, closed] = await followers(server, 2);
    for (const name of ['a', 'b']) await create(server, name);
    for (const stream of [open, closed]) await stream?.until(2);
    closed?.close();
    const lines = () =>
      linesOf(server.output.stdout).filter(
        ({ fields }) => `${fields}` === 'petAdded',
      );
    await eventually(async () => lines().length > 0);
    const line = {
      operation: 'PetAdded',
      status: 200,
      items: 2,
      msg: 'answered',
    };
    expect(lines()).toEqual([expect.objectContaining(line)]);

    server.child.kill('SIGTERM');
    const ready = () => send(server.origin, { path: '/readyz' });
    await eventually(async () => (await ready()).status === 503);
    expect(JSON.parse((await ready()).text).message).toBe(
      'The service is shutting down.',
    );
    expect((await send(server.origin, { path: '/livez' })).status).toBe(200);
    const late = await follow(server);
    expect([late.status, late.headers['retry-after']]).toEqual([503, '1']);
    const created = await create(server, 'c');
    expect([created.status, created.headers.connection]).toEqual([
      201,
      'close',
    ]);
    await open?.until(3);
    server.child.kill('SIGKILL');
  });
});
