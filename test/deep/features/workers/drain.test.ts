import { createOwnDatabase } from '../../../support/database.ts';
import { seen } from '../../../support/events.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import {
  eventually,
  isRunning,
  startServer,
} from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';
import { exchange, requestText } from '../../../support/raw.ts';
import { rest } from '../../../support/rest.ts';
import {
  create,
  drained,
  environment,
  followers,
} from '../../support/draining.ts';
import { startWorkers } from './start.ts';

const database = databaseForEach();
const env = () => environment(database);

describe('workers', () => {
  test('all drain after SIGTERM to the parent, which ends with 0; live lists at one worker get the creations of the others', async () => {
    const server = await startWorkers(env(), 2);
    const streams = await followers(server, 4);
    for (const name of ['a', 'b', 'c']) await create(server, name);
    for (const stream of streams) {
      await stream.until(3);
      expect(seen(stream)).toEqual(['a', 'b', 'c']);
    }
    const { stdout, ...ended } = await server.stop();
    expect(ended).toEqual(drained);
    const by = (message: string) =>
      linesOf(stdout, message).map(({ worker }) => worker);
    // The parent logs the start and the end of the service, and each worker its
    // own drain.
    expect(by('started')).toEqual([undefined]);
    expect(by('draining').sort()).toEqual([1, 2, undefined]);
    expect(by('closed').sort()).toEqual([1, 2, undefined]);
    expect(linesOf(stdout).at(-1)).toMatchObject({
      msg: 'closed',
      pid: server.child.pid,
      isClean: true,
      workers: 0,
    });
    expect(server.pids().filter(isRunning)).toEqual([]);
  });

  test('drain when SIGINT comes twice to every process, as Ctrl-C sends it', async () => {
    const server = await startWorkers(env(), 2);
    for (let time = 1; time <= 2; time += 1) {
      for (const pid of [server.child.pid as number, ...server.pids()])
        process.kill(pid, 'SIGINT');
    }
    expect(await server.ended).toMatchObject(drained);
  });

  test('and the port for operators answer /readyz with 503 while the service drains', async () => {
    const server = await startWorkers(
      { ...env(), DRAIN_DELAY_MS: '600000' },
      2,
    );
    const statuses = async () => {
      const statuses: unknown[] = [
        (await send(server.operations, { path: '/readyz' })).status,
      ];
      for (let time = 1; time <= 6; time += 1) {
        const [response] = await exchange(server, requestText('GET /readyz'));
        statuses.push(response?.status);
      }
      return statuses;
    };
    await eventually(async () =>
      (await statuses()).every((status) => status === 200),
    );
    server.child.kill('SIGTERM');
    await eventually(async () =>
      (await statuses()).every((status) => status === 503),
    );
    for (const pid of server.pids()) process.kill(pid, 'SIGKILL');
    expect(await server.ended).toMatchObject({ code: 1, signal: null });
  });

  test('that do not end in time are killed, and the service ends with 1', async () => {
    const server = await startWorkers({ ...env(), DRAIN_TIMEOUT_MS: '100' }, 2);
    process.kill(server.pids()[0] as number, 'SIGSTOP');
    expect(await server.stop()).toMatchObject({
      code: 1,
      signal: null,
      stderr: '',
    });
    expect(server.pids().filter(isRunning)).toEqual([]);
  });

  const own = databaseForEach(createOwnDatabase);

  test('of an embedded store drain and end when their parent is killed, and lose no acknowledged creation', async () => {
    const server = await startWorkers(environment(own), 2);
    const created = await create(server, 'Rex');
    server.child.kill('SIGKILL');
    // The workers share its standard error, so they are about to end when it
    // closes.
    expect((await server.ended).stderr).toBe('');
    await eventually(async () => !server.pids().some(isRunning));
    const again = await startServer(environment(own));
    expect((await rest(again, '/v1/pets')).json).toEqual([created.json]);
  });
});
