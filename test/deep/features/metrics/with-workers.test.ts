import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import {
  allUp,
  bootstrapKey,
  eventually,
  type ServerProcess,
} from '../../../support/process.ts';
import { untilLogged } from '../../../support/process-log.ts';
import { exchange, requestText } from '../../../support/raw.ts';
import { startWorkers } from '../workers/start.ts';

const database = databaseForEach();
const authorization = `Authorization: Bearer ${bootstrapKey}\r\n`;

const lists =
  'animal_store_operations_total{api="rest",operation="listPets",code="OK"}';

/** Lists on a new connection each time, which goes to the next worker. */
async function list(server: ServerProcess, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1)
    await exchange(server, requestText('GET /v1/pets', authorization));
}

test('the parent adds the counts of its workers, and keeps them when a worker hangs or dies', async () => {
  const server = await startWorkers(database.env, 2);
  const metric = async (name: string) => (await server.metrics()).get(name);
  await list(server, 10);
  await eventually(async () => (await metric(lists)) === 10);
  const series = await server.metrics();
  expect(series.get('animal_store_workers_up')).toBe(2);
  expect(series.get('animal_store_workers_silent')).toBe(0);
  expect(
    series.get('animal_store_dependency_up{dependency="postgresql"}'),
  ).toBe(1);
  expect(
    [...series.keys()].filter((name) => name.startsWith('animal_store_info')),
  ).toHaveLength(1);

  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGSTOP');
  // A stopped worker would outlive the test, so it is continued in any case. It
  // delays no scrape.
  const isCounted = eventually(
    async () => (await metric('animal_store_workers_silent')) === 1,
  );
  await isCounted.finally(() => process.kill(victim, 'SIGCONT'));
  expect(await metric(lists)).toBe(10);
  await eventually(
    async () => (await metric('animal_store_workers_silent')) === 0,
  );
  expect(await metric(lists)).toBe(10);

  process.kill(victim, 'SIGKILL');
  await untilLogged(server, 'worker ready', 3);
  await allUp(server);
  expect(await metric(lists)).toBe(10);
  await list(server, 4);
  await eventually(async () => (await metric(lists)) === 14);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
