import { databaseForEach } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import { expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { requestsFor, untilLogged } from '../../../support/process-log.ts';
import { exchange, requestText } from '../../../support/raw.ts';
import { startWorkers } from './start.ts';

const database = databaseForEach();

test('the settings apply to all workers, and to a worker that starts later', async () => {
  const server = await startWorkers(database.env, 2);
  const { status } = await send(server.operations, {
    path: '/log',
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sample: 0 }),
  });
  expect(status).toBe(200);
  const linesFor = (path: string) => requestsFor(server.output.stdout, path);
  const requestFromAll = async (path: string) => {
    for (let time = 1; time <= 6; time += 1)
      await exchange(server, requestText(`GET ${path}`));
  };
  // The settings reach the workers later. A refusal is never omitted; its line
  // follows those of earlier requests.
  await eventually(async () => {
    const [lines, marks] = [
      linesFor('/livez').length,
      linesFor('/v1/mark').length,
    ];
    await requestFromAll('/livez');
    await requestFromAll('/v1/mark');
    await eventually(async () => linesFor('/v1/mark').length === marks + 6);
    return linesFor('/livez').length === lines;
  });
  const [victim] = await untilLogged(server, 'worker ready', 2);
  process.kill(victim?.workerPid as number, 'SIGKILL');
  const later = (await untilLogged(server, 'worker ready', 3))[2]?.worker;
  await eventually(async () => {
    await requestFromAll('/schema.graphql');
    await requestFromAll('/v1/later');
    return linesFor('/v1/later').some(({ worker }) => worker === later);
  });
  await server.stop();
  expect(linesFor('/schema.graphql')).toEqual([]);
});
